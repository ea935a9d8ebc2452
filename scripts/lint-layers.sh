#!/usr/bin/env bash
# Checks the layering rules of CONTRIBUTING.md: scripts/lint-layers.sh [ROOT]. See scripts/lint-layers.py.
set -euo pipefail

exec python3 "$(dirname "${BASH_SOURCE[0]}")/lint-layers.py" "$@"
