"""Expressions as a server prints them; the expected texts were printed by MariaDB 10.11 and 11.8."""

import pytest

from ibbmaster.schema.expression_text import EXPRESSION_SIZE_MAX, default_expression_text, expression_text

PRINTED = {
    "a*2": "`a` * 2",
    "1+2*3": "1 + 2 * 3",
    "(1+2)*3": "(1 + 2) * 3",
    "a-(b-1)": "`a` - (`b` - 1)",
    "a > 5 and a < 3": "`a` > 5 and `a` < 3",
    "a is not null and b in (1,2) or not c like 'x%'": "`a` is not null and `b` in (1,2) or `c`  not like 'x%'",
    "a BETWEEN 1 AND 2": "`a` between 1 and 2",
    "a!=b": "`a` <> `b`",
    "a mod 2": "`a` MOD 2",
    "a div b": "`a` DIV `b`",
    "a xor b": "`a` xor `b`",
    "a|b&3^~1": "`a` | `b` & 3 ^ ~1",
    "-a": "-`a`",
    "CASE WHEN a>1 THEN 2 ELSE 3 END": "case when `a` > 1 then 2 else 3 end",
    "IF(a, b, c)": "if(`a`,`b`,`c`)",
    "CONCAT('x', a)": "concat('x',`a`)",
    "length(c) + char_length(c)": "octet_length(`c`) + char_length(`c`)",
    "substring(c,1,2)": "substr(`c`,1,2)",
    "upper(c) collate utf8mb4_bin": "ucase(`c`) collate utf8mb4_bin",
    "date_add('2020-01-01', interval 1 day)": "'2020-01-01' + interval 1 day",
    "current_user": "current_user()",
    "json_value(c, '$.x')": "json_value(`c`,'$.x')",
    "a and b": "`a` <> 0 and `b` <> 0",
    "a or b + 1": "`a` <> 0 or `b` + 1",
    "not a": "`a` = 0",
    "!a": "`a` = 0",
    "not (a = 1)": "`a` <> 1",
    "not (a and b)": "`a` = 0 or `b` = 0",
    "not (a = 1 or b = 2)": "`a` <> 1 and `b` <> 2",
    "not (a = 1 and (b = 2 or c = 3))": "`a` <> 1 or `b` <> 2 and `c` <> 3",
    "a in (1)": "`a` = 1",
    "a not in (b = 1)": "`a` <> (`b` = 1)",
    "a is true": "`a` is true",
    "a is not false": "`a` is not false",
    "a is unknown": "`a` is null",
    "d regexp 'x'": "`d` regexp 'x'",
    "trim('x' from d)": "trim(both 'x' from `d`)",
    "trim(leading 'x' from d)": "trim(leading 'x' from `d`)",
    "position('x' in d)": "locate('x',`d`)",
    "instr(d, 'x')": "locate('x',`d`)",
    "extract(year from d)": "extract(year from `d`)",
    "date(d)": "cast(`d` as date)",
    "cast(d as unsigned integer)": "cast(`d` as unsigned)",
    "cast(a as decimal(5,2))": "cast(`a` as decimal(5,2))",
    "st_geomfromtext('POINT(1 1)')": "st_geometryfromtext('POINT(1 1)')",
    "nextval(d.s) + 1": "nextval(`d`.`s`) + 1",
    "lastval(`a``b`)": "lastval(`a``b`)",
}
#: Whose printed form is not known.
AS_WRITTEN = [
    "cast(a as char)",
    "my_own(a)",
    "a.b + 1",
    "not (a xor b)",
    "a not regexp 'x'",
    "trim(both from a)",
    "instr(a)",
    "cast(a as decimal)",
    "nextval('s')",
    "a = (SELECT 1)",
    "_utf8mb4'x'",
    "a +",
    "'x",
    "((a)",
    "a" + " + a" * EXPRESSION_SIZE_MAX,
    "(" * 5000 + "a" + ")" * 5000,
]
DEFAULTS = {
    "(1+2)": "(1 + 2)",
    "((1+2))": "(1 + 2)",
    "(uuid())": "uuid()",
    "concat('x',1+2)": "concat('x',1 + 2)",
    "(case when a>1 then 2 else 3 end)": "(case when `a` > 1 then 2 else 3 end)",
    "(-a)": "(-`a`)",
    "(cast(a as char))": "(cast(a as char))",
    "(1)+(2)": "(1 + 2)",
}


@pytest.mark.parametrize(("written", "printed"), PRINTED.items(), ids=list(PRINTED))
def test_what_is_known_is_printed_as_a_server_prints_it(written, printed):
    assert expression_text(written) == printed
    assert expression_text(printed) == printed  # and it means the same


@pytest.mark.parametrize("written", AS_WRITTEN, ids=lambda text: text[:20])
def test_what_is_not_known_stays_as_it_was_written(written):
    assert expression_text(written) == written


@pytest.mark.parametrize(("written", "printed"), DEFAULTS.items(), ids=list(DEFAULTS))
def test_a_default_has_brackets_but_around_a_call(written, printed):
    assert default_expression_text(written) == printed
