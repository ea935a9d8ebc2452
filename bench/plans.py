"""Plans as EXPLAIN (FORMAT JSON) shows them."""


def schemas_read(plan):
    """The schemas of all relations that a plan names, wherever in it."""
    for part in plan if isinstance(plan, list) else [plan] if isinstance(plan, dict) else []:
        if isinstance(part, dict):
            if "Relation Name" in part:
                yield part.get("Schema")
            for value in part.values():
                yield from schemas_read(value)
