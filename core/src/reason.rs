//! Why a statement was not served or not stored. Constants only: nothing here is shared.

macro_rules! reasons {
    ($($variant:ident, $name:literal, $sentence:literal;)+) => {
        /// Why a statement was neither answered from the cache nor stored in it.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $sentence] $variant,)+
        }

        impl Reason {
            /// Every reason, in the order of their indexes.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)+];

            /// The name users see and filter by, in snake case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Reason::$variant => $name,)+
                }
            }

            /// One sentence for users.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self {
                    $(Reason::$variant => $sentence,)+
                }
            }
        }
    };
}

reasons! {
    NotSelect, "not_select", "The statement is not one SELECT, VALUES or WITH query.";
    UtilityStatement, "utility_statement", "The statement is a utility command.";
    Disabled, "disabled", "The cache is switched off for this session.";
    NoCacheHint, "no_cache_hint", "A comment before the statement says no_arrow_cache.";
    NestedStatement, "nested_statement", "The statement runs inside a function, a procedure or another statement.";
    NotAnalyzed, "not_analyzed", "The plan was not made while the cache was watching, so its dependencies are unknown.";
    DataModifyingCte, "data_modifying_cte", "A WITH clause of the query changes data.";
    RowLocks, "row_locks", "The query locks rows (FOR UPDATE, FOR SHARE or the like).";
    VolatileFunction, "volatile_function", "The query calls a volatile function.";
    StableFunction, "stable_function", "The query calls a stable function whose inputs are not all part of the key.";
    SessionFunction, "session_function", "The query asks for the user, a setting or other state of the session, or for the time at this very moment.";
    MovingClock, "moving_clock", "The answer moves with the clock. Round the time to a minute or more: date_trunc('minute', now()), now()::date or CURRENT_DATE.";
    UserDefinedFunction, "user_defined_function", "The query calls a function, operator or aggregate that is not built in.";
    SystemCatalog, "system_catalog", "The query reads a system catalog.";
    SystemColumn, "system_column", "The query reads a system column such as ctid or xmin.";
    TemporaryRelation, "temporary_relation", "The query reads a temporary relation.";
    ForeignTable, "foreign_table", "The query reads a foreign table, whose changes the server cannot see.";
    PolicyNever, "policy_never", "The owner of a relation of the query does not want it cached (arrow_cache.set_policy).";
    UnsupportedRelation, "unsupported_relation", "The query reads a relation of a kind or access method whose changes the cache cannot follow.";
    IndexMethod, "index_method", "The plan scans an index whose access method is not built in.";
    Tablesample, "tablesample", "The query uses TABLESAMPLE.";
    NoRelation, "no_relation", "The query reads no relation at all, so there is nothing to gain.";
    RecordType, "record_type", "A parameter or a column of the result is an anonymous record.";
    UnsupportedType, "unsupported_type", "A column or parameter has a type the cache cannot keep exactly.";
    DomainConstraint, "domain_constraint", "The query casts to a domain, whose constraints may change.";
    XmlExpression, "xml_expression", "The query uses an XML expression.";
    DynamicParameters, "dynamic_parameters", "Parameters of the query are supplied while it runs.";
    ScrollableCursor, "scrollable_cursor", "The rows of the cursor were read in another order than from the first to the last.";
    UpdatableCursor, "updatable_cursor", "The cursor is a plain scan, whose current row another statement may update (WHERE CURRENT OF).";
    SettingsInCursor, "settings_in_cursor", "The answer depends on settings or definitions that have changed, or may change, before the first row of the portal is read.";
    SettingsChanged, "settings_changed", "Settings changed between the start of the query and the reading of its rows.";
    TooComplex, "too_complex", "The query cannot be judged: it nests too deeply, refers to too much, or another library scans a table of it.";
    Serializable, "serializable", "The transaction is SERIALIZABLE, which must see every read happen.";
    Recovery, "recovery", "The server is in recovery, and replay does not tell of every change to what the query reads.";
    ForbiddenRelations, "forbidden_relations", "The session has forbidden itself to read relations of some kind (restrict_nonsystem_relation_kind).";
    Snapshot, "snapshot", "The statement does not run under a plain MVCC snapshot.";
    OwnWrites, "own_writes", "This transaction has changed a relation the query reads, or more relations than are compared (250).";
    OwnDdl, "own_ddl", "This transaction has changed the definition of database objects.";
    WriterInProgress, "writer_in_progress", "A change to a relation of the query is under way or not visible to this snapshot.";
    DdlInProgress, "ddl_in_progress", "A change of definitions is under way or not visible to this snapshot.";
    OldPlan, "old_plan", "The prepared plan, or what the session keeps of a function, may be older than the last change of definitions.";
    PopulateOff, "populate_off", "Storing new results is switched off (pg_arrow_cache.populate).";
    TooQuick, "too_quick", "The query ran for less than pg_arrow_cache.min_execution_time, or than ten times what looking it up takes.";
    QuickRows, "quick_rows", "The query gives its rows about as fast as they can be stored, so that its answer is stored when it is asked again.";
    TooFewRuns, "too_few_runs", "The query has run fewer times than pg_arrow_cache.min_runs.";
    TooLarge, "too_large", "The result is larger than pg_arrow_cache.max_entry_size, or one of its rows than 256 MB.";
    NoRoom, "no_room", "No room could be made for the result.";
    Outweighed, "outweighed", "The memory is full of results that save more time for their size.";
    OutOfMemory, "out_of_memory", "The server has no memory for judging the statement or for gathering its result.";
    UnreadableFile, "unreadable_file", "The file that had the answer on disk cannot be read.";
    IncompleteRead, "incomplete_read", "The result was not read to its end.";
    ChangedMeanwhile, "changed_meanwhile", "A relation of the query changed while it ran.";
    Explain, "explain", "The statement is being explained.";
    TextEncoding, "text_encoding", "Text of the result is not in an encoding the cache can keep.";
}

/// As what a statement is counted that was executed without the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// A query of a client. It counts in the hit ratio.
    Bypass,
    /// Sent by a client, and nothing that a cache answers.
    Other,
    /// Run inside of another statement, or at its end.
    Nested,
}

/// Number of reasons.
pub const REASONS: usize = Reason::ALL.len();

impl Reason {
    /// As what a statement is counted that was executed without the cache for this reason.
    #[must_use]
    pub const fn share(self) -> Share {
        match self {
            Reason::NotSelect
            | Reason::UtilityStatement
            | Reason::Explain
            | Reason::DataModifyingCte
            | Reason::NoRelation => Share::Other,
            Reason::NestedStatement => Share::Nested,
            _ => Share::Bypass,
        }
    }

    /// Position in [`Reason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn indexes_follow_the_list() {
        for (position, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), position);
        }
    }

    #[test]
    fn names_are_the_variants_in_snake_case_and_distinct() {
        let mut names = HashSet::new();
        for reason in Reason::ALL {
            let mut expected = String::new();
            for letter in format!("{reason:?}").chars() {
                if letter.is_uppercase() && !expected.is_empty() {
                    expected.push('_');
                }
                expected.push(letter.to_ascii_lowercase());
            }
            assert_eq!(reason.name(), expected);
            assert!(names.insert(reason.name()));
        }
    }

    #[test]
    fn only_queries_of_clients_that_read_count_as_bypasses() {
        let others: Vec<&str> =
            Reason::ALL.iter().filter(|reason| reason.share() == Share::Other).map(|reason| reason.name()).collect();
        assert_eq!(others, ["not_select", "utility_statement", "data_modifying_cte", "no_relation", "explain"]);
        assert_eq!(Reason::NestedStatement.share(), Share::Nested);
        assert_eq!(Reason::RowLocks.share(), Share::Bypass);
    }

    #[test]
    fn descriptions_are_sentences() {
        for reason in Reason::ALL {
            assert!(reason.describe().ends_with('.'), "{reason:?}");
            assert!(reason.describe().starts_with(char::is_uppercase), "{reason:?}");
        }
    }
}
