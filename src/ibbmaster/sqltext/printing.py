"""Expressions as a server prints its trees of them: names quoted, operators spaced, functions by their preferred names;
only if the text of 10.11 and 11.8 is known for every part."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ibbmaster.facts import rows_of
from .expression import Call, Cast, ColumnName, Expression, Literal, Operation
from .operators import BY_NAME, JOINED, JOINED_ORACLE, PREDICATE, PRIMARY, SUM, UNARY
from .quoting import quoted_in_expression, quoted_name

#: Functions of servers, and their printed names; empty where these are not known.
KNOWN_FUNCTIONS = dict(rows_of("ibbmaster.sqltext", "functions"))
_OPPOSITES: Mapping[str, str] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class UnknownTextError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """`binds`: how tightly its operator binds."""

    text: str
    binds: int = PRIMARY
    needs_brackets: bool = False  # as a whole DEFAULT
    opposite: str | None = None  # its printed negation, where NOT becomes a part of it
    opposite_binds: int = PREDICATE  # how tightly that binds

    def within(self, least: int) -> str:
        """As an operand of an operator that binds so tightly."""
        return self.text if self.binds >= least else f"({self.text})"


def printed(expression: Expression) -> ExpressionText:
    """As SHOW CREATE TABLE has it. Raises UnknownTextError: unknown. Source: MariaDB 10.11 and 11.8, as they answer."""
    match expression:
        case Literal():
            return ExpressionText(_literal(expression))
        case ColumnName(parts=(name,)):
            return ExpressionText(quoted_name(name), needs_brackets=True)
        case Call(name=("date_add" | "adddate" | "date_sub" | "subdate") as name, arguments=(moment, interval)):
            return _moved(moment, "+" if name in ("date_add", "adddate") else "-", interval)
        case Call(name=name, database=None, is_read=True, arguments=arguments) if name in _SPECIAL:
            return ExpressionText(_SPECIAL[name](arguments))
        case Call(name=name, database=None, is_read=True, arguments=arguments) if shown := KNOWN_FUNCTIONS.get(name):
            return ExpressionText(f"{shown}({_list(arguments)})")
        case Cast():
            return _cast(expression)
        case Call(name="instr", database=None, is_read=True, arguments=(text, part)):
            return ExpressionText(f"locate({_list((part, text))})")
        case Call(name="date", database=None, is_read=True, arguments=(value,)):
            return _cast(Cast(value, "date"))
        case Operation(operator="NOT", operands=(operand,)):
            return _negated(operand)
        case Operation(operator=("AND" | "OR") as sign):
            return _condition(sign, [_truth(each) for each in _flat(expression)])
        case Operation(operator=("+" | "-") as sign, operands=(moment, Operation(operator="INTERVAL") as interval)):
            return _moved(moment, sign, interval)
        case Operation(operator=(("CASE" | "CASE OF") as operator), operands=(value, *branches, otherwise)):
            return _case(None if operator == "CASE" else value, branches, otherwise)
        case Operation():
            return _operation(expression)
    raise UnknownTextError


def _negated(operand: Expression) -> ExpressionText:
    """NOT becomes a part of its operand where that is possible."""
    match operand:
        case Operation(operator=("XOR" | "REGEXP")) | Call(name="isnull"):
            raise UnknownTextError
    inner = _truth(operand)
    negated = _opposite(inner)
    return ExpressionText(
        negated.text, negated.binds, True, None if inner.opposite is None else inner.text, inner.binds
    )


def _opposite(part: ExpressionText) -> ExpressionText:
    if part.opposite is None:
        return ExpressionText(f"!{part.within(UNARY)}", UNARY)
    return ExpressionText(part.opposite, part.opposite_binds)


def _truth(operand: Expression) -> ExpressionText:
    """In a condition a column becomes a comparison with 0."""
    found = printed(operand)
    if isinstance(operand, ColumnName):
        return _predicate(f"{found.text} <> 0", f"{found.text} = 0")
    return found


def _flat(operation: Operation) -> list[Expression]:
    found: list[Expression] = []
    for operand in operation.operands:
        is_same = isinstance(operand, Operation) and operand.operator == operation.operator
        found += _flat(operand) if is_same and isinstance(operand, Operation) else [operand]
    return found


def _condition(name: str, parts: list[ExpressionText]) -> ExpressionText:
    operator, other = BY_NAME[name], BY_NAME["OR" if name == "AND" else "AND"]
    text = f" {operator.printed} ".join(part.within(operator.binds) for part in parts)
    opposite = f" {other.printed} ".join(_opposite(part).within(other.binds) for part in parts)
    return ExpressionText(text, operator.binds, True, opposite, other.binds)


def _literal(literal: Literal) -> str:
    charset = "" if literal.charset is None else f"_{literal.charset}"
    value = literal.value
    if isinstance(value, bytes):
        digits = value.hex()
        return charset + (f"X'{digits}'" if literal.written[0] in "xX" else f"0x{digits}")
    if isinstance(value, str):
        return charset + quoted_in_expression(value)
    return "NULL" if value is None else literal.written or str(value)


def _trim(arguments: tuple[Expression, ...]) -> str:
    match arguments:
        case (Literal(value=str() as ends), what, text):
            return f"trim({ends.lower()} {printed(what).text} from {printed(text).text})"
        case (text,):
            return f"trim({printed(text).text})"
    raise UnknownTextError


def _extract(arguments: tuple[Expression, ...]) -> str:
    match arguments:
        case (Literal(value=str() as unit), moment):
            return f"extract({unit.lower()} from {printed(moment).text})"
    raise UnknownTextError


def _cast(cast: Cast) -> ExpressionText:
    word = ("unsigned" if cast.is_unsigned else "signed") if cast.kind == "integer" else cast.kind
    sizes = [] if cast.length is None else [cast.length, *([] if cast.scale is None else [cast.scale])]
    if cast.charset is not None or word not in _CASTS or bool(sizes) not in _CASTS[word]:
        raise UnknownTextError
    text = f"({','.join(map(str, sizes))})" if sizes else ""
    return ExpressionText(f"cast({printed(cast.value).text} as {word}{text})")


#: Types of CAST, and whether they may have sizes.
_CASTS: Mapping[str, tuple[bool, ...]] = {
    **dict.fromkeys(("signed", "unsigned", "date", "double"), (False,)),
    **dict.fromkeys(("datetime", "time"), (False, True)),
    "decimal": (True,),
}


def _sequence(function: str, arguments: tuple[Expression, ...]) -> str:
    match arguments:
        case (ColumnName(parts=parts),):
            return f"{function}({'.'.join(map(quoted_name, parts))})"
    raise UnknownTextError


_SPECIAL: Mapping[str, Callable[[tuple[Expression, ...]], str]] = {
    "trim": _trim,
    "extract": _extract,
    "nextval": lambda arguments: _sequence("nextval", arguments),
    "lastval": lambda arguments: _sequence("lastval", arguments),
}


def _list(expressions: tuple[Expression, ...]) -> str:
    return ",".join(printed(each).text for each in expressions)


def _operation(operation: Operation) -> ExpressionText:
    operator, operands = operation.operator, operation.operands
    if operator in (JOINED, JOINED_ORACLE):
        return ExpressionText(f"{'concat' if operator == JOINED else 'concat_operator_oracle'}({_list(operands)})")
    if operator in BY_NAME:
        return _binary(operator, operands)
    first = printed(operands[0])
    if operator in ("NEGATIVE", "~"):
        return ExpressionText(f"{'-' if operator == 'NEGATIVE' else '~'}{first.within(UNARY)}", UNARY, True)
    if operator == "COLLATE":
        collation = operands[1]
        assert isinstance(collation, Literal)
        assert isinstance(collation.value, str)
        return ExpressionText(f"{first.within(UNARY)} collate {collation.value}", UNARY, True)
    operand = first.within(PREDICATE + 1)
    others = [printed(each).within(PREDICATE + 1) for each in operands[1:]]
    match operator:
        case "IS NULL":
            return _predicate(f"{operand} is null", f"{operand} is not null")
        case "IS TRUE" | "IS FALSE":
            return _predicate(f"{operand} {operator.lower()}", f"{operand} is not {operator[3:].lower()}")
        case "REGEXP":
            return ExpressionText(f"{operand} regexp {printed(operands[1]).within(UNARY)}", PREDICATE, True)
        case "IN" if len(others) == 1:
            return _predicate(f"{operand} = {others[0]}", f"{operand} <> {others[0]}")
        case "IN":
            values = f"in ({_list(operands[1:])})"
            return _predicate(f"{operand} {values}", f"{operand} not {values}")
        case "BETWEEN":
            limits = f"between {others[0]} and {others[1]}"
            return _predicate(f"{operand} {limits}", f"{operand} not {limits}")
        case "LIKE" if len(others) == 1:
            return _predicate(f"{operand} like {others[0]}", f"{operand}  not like {others[0]}")
    raise UnknownTextError


def _predicate(text: str, opposite: str | None) -> ExpressionText:
    return ExpressionText(text, PREDICATE, True, opposite)


def _binary(operator: str, operands: tuple[Expression, ...]) -> ExpressionText:
    binds, _, sign = BY_NAME[operator]
    first, *others = map(printed, operands)
    parts = [first.within(binds), *(other.within(binds + 1) for other in others)]
    opposite = None
    if operator in _OPPOSITES:
        opposite = f" {BY_NAME[_OPPOSITES[operator]].printed} ".join(parts)
    return ExpressionText(f" {sign} ".join(parts), binds, True, opposite)


def _moved(moment: Expression, sign: str, interval: Expression) -> ExpressionText:
    match interval:
        case Operation(operator="INTERVAL", operands=(amount, Literal(value=str() as unit))):
            first = printed(moment).within(SUM + 1)
            return ExpressionText(f"{first} {sign} interval {printed(amount).text} {unit.lower()}", SUM, True)
    raise UnknownTextError


def _case(value: Expression | None, branches: list[Expression], otherwise: Expression) -> ExpressionText:
    text = "case" if value is None else f"case {printed(value).text}"
    for condition, result in zip(branches[::2], branches[1::2], strict=True):
        text += f" when {printed(condition).text} then {printed(result).text}"
    if not isinstance(otherwise, Literal) or otherwise.value is not None or otherwise.written:
        text += f" else {printed(otherwise).text}"
    return ExpressionText(f"{text} end", needs_brackets=True)
