# Sourced by the start scripts, which set $root (the checkout): gets a virtual environment ready.
# Owns: the choice of a Python, and the quick check that nothing is to be done (no process but cmp).
# Does not own: making an environment (.venv.py does that, under a lock).

# venv_is_ready VENV: made to its end, for this checkout, from this pyproject.toml, with the Python asked for.
venv_is_ready() {
    [ -x "$1/bin/python" ] && [ -r "$1/made/for" ] || return 1
    { IFS= read -r made_root && IFS= read -r made_python; } <"$1/made/for" || return 1
    [ "$made_root" = "$root" ] || return 1
    [ -z "${CC_AGENTS_PYTHON-}" ] || [ "$made_python" = "$CC_AGENTS_PYTHON" ] || return 1
    cmp -s "$root/pyproject.toml" "$1/made/pyproject.toml"
}

# find_python: sets $python to the one asked for, else to the newest that can make a virtual environment.
find_python() {
    set -- python3.13 python3.12 python3.11 python3.10 python3
    [ -z "${CC_AGENTS_PYTHON-}" ] || set -- "$CC_AGENTS_PYTHON"
    for python; do
        # Started, not only looked for: a version manager's shim may lead nowhere.
        "$python" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' \
            >/dev/null 2>&1 </dev/null && return 0
    done
    echo "cc-agents: needs Python 3.10 or newer with venv (tried: $*);" \
        "install one, or name it in CC_AGENTS_PYTHON" >&2
    return 1
}

# ready_venv VENV [EXTRA]: when it returns VENV can be used; else it ends the script, with one line said.
ready_venv() {
    venv_is_ready "$1" && return 0
    find_python || exit 2
    "$python" -I "$root/bin/.venv.py" "$@" </dev/null >&2 || exit 2
}
