"""What can be read from a student's code without running it: blanks still to fill, forbidden names."""

import ast
import inspect
import textwrap


def source_of(thing) -> str | None:
    """The text of a function or class, or None where nobody kept it (typed at a bare prompt)."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError, IndentationError):
        return None


def parsed(source: str | None) -> ast.Module | None:
    """The tree of a source, or None where it can't be read: half a line around a lambda, say."""
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError):  # ValueError: a null byte
        return None


def blanks(source: str | None) -> list[str]:
    """The lines that still hold the `...` of a stub. An index, as in x[..., 0], is no blank."""
    tree = parsed(source)
    if tree is None:
        return []
    indices = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        for inner in ast.walk(node.slice)
    }
    lines = source.splitlines()
    return [
        lines[node.lineno - 1].strip()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value is Ellipsis and id(node) not in indices
    ]


def is_empty(source: str | None) -> bool:
    """Whether all functions in it do nothing but `pass`, or raise NotImplementedError."""
    functions = _functions(source)
    return bool(functions) and all(_does_nothing(function) for function in functions)


def has_empty(source: str | None) -> bool:
    """Whether some function in it does nothing: the stub of a class may give its `__init__`."""
    return any(_does_nothing(function) for function in _functions(source))


def _functions(source: str | None) -> list[ast.FunctionDef]:
    tree = parsed(source) or ast.Module([], [])
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _does_nothing(function: ast.FunctionDef) -> bool:
    for statement in function.body:
        if isinstance(statement, ast.Pass):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # the docstring
        if isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement):
            continue
        return False
    return True


def parameters(source: str | None, name: str) -> list[str]:
    """What a function calls its arguments, or a class those of its `__init__`; [] if it can't be read."""
    for node in ast.walk(parsed(source) or ast.Module([], [])):
        if isinstance(node, ast.ClassDef) and node.name == name:
            inner = ast.unparse([n for n in node.body if getattr(n, "name", "") == "__init__"])
            return parameters(inner, "__init__")[1:]
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return [argument.arg for argument in node.args.posonlyargs + node.args.args]
    return []


def forbidden(source: str | None, names: tuple[str, ...]) -> tuple[str, str] | None:
    """The first forbidden name that a source uses, and the line where it does; None if it has none.

    Found as a name, after a dot, in an import, and in quotes (for getattr). A function of the
    student's own may bear the name: what is defined there is no use of torch's.
    """
    tree = parsed(source)
    if tree is None or not names:
        return None
    own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    decorators = {
        id(inner)
        for node in ast.walk(tree)
        for decorator in getattr(node, "decorator_list", [])
        for inner in ast.walk(decorator)
    }
    # an import that nothing speaks of is no use: the chapter's own lines import for other cells, too
    spoken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    lines = source.splitlines()
    for node in ast.walk(tree):
        if id(node) in decorators:
            continue
        used = {
            ast.Name: lambda n: n.id if n.id not in own else None,
            ast.Attribute: lambda n: n.attr,
            ast.alias: lambda n: (
                n.name.rpartition(".")[2]
                if (n.asname or n.name.partition(".")[0]) in spoken
                else None
            ),
            ast.Constant: lambda n: n.value if isinstance(n.value, str) else None,
        }.get(type(node), lambda n: None)(node)
        if used in names:
            return used, lines[node.lineno - 1].strip()
    return None
