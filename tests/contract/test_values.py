"""Quantities and versions are those of Kubernetes: same verdicts, texts, order and arithmetic.

The answers come from a small Go program (``go/values``) around k8s.io/apimachinery and
github.com/blang/semver/v4. A list of questions with its answers is committed, so that the
comparison also runs without Go; after a change of the list, in that folder::

    go run -mod=readonly . < ../../../data/values/questions.jsonl \
        > ../../../data/values/answers-0.37.2.jsonl

With Go, random questions are put to both with a fresh seed: 2,000 of each kind, or 20,000 when
``DRAGOMAN_SOAK`` is set. ``DRAGOMAN_SEED`` repeats a run. Of a refusal only the verdict is
compared, not the wording.
"""

from __future__ import annotations

import collections
import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dra_core.errors import InvalidQuantity, InvalidVersion
from dra_core.quantity import Quantity
from dra_core.semver import SemVer

if TYPE_CHECKING:
    from collections.abc import Callable

APIMACHINERY = "0.37.2"
ROOT = Path(__file__).resolve().parents[2]
GO_PROGRAM = Path(__file__).resolve().parent / "go" / "values"
QUESTIONS = ROOT / "tests" / "data" / "values" / "questions.jsonl"
ANSWERS = ROOT / "tests" / "data" / "values" / f"answers-{APIMACHINERY}.jsonl"

Question = dict[str, Any]
Answer = dict[str, Any]


# --- our answers, in the words of the Go program ---


def look(quantity: Quantity) -> dict[str, Any]:
    return {
        "text": str(quantity),
        "format": quantity.format.value,
        "value": quantity.value(),
        "milli": quantity.milli_value(),
        "sign": quantity.sign(),
        "zero": quantity.is_zero(),
        "int64": quantity.as_int64(),
    }


def apply(quantity: Quantity, step: dict[str, Any]) -> Quantity:
    if step["op"] == "neg":
        return quantity.neg()
    if step["op"] == "mul":
        return quantity.mul(step["by"])
    operation = {"add": quantity.add, "sub": quantity.sub, "times": quantity.times}[step["op"]]
    return operation(Quantity.parse(step["with"]))


def quantities(text: str, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    quantity = Quantity.parse(text)
    facts = [look(quantity)]
    for step in steps:
        quantity = apply(quantity, step)
        facts.append(look(quantity))
    return facts


def version(text: str) -> dict[str, Any]:
    v = SemVer.parse(text)
    return {
        "text": str(v),
        "major": v.major,
        "minor": v.minor,
        "patch": v.patch,
        "pre": len(v.pre),
        "build": len(v.build),
    }


def compare(left: str, right: str) -> int:
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert (a == b, a < b, a > b) == (a.compare(b) == 0, a.compare(b) < 0, a.compare(b) > 0)
    assert a != b or hash(a) == hash(b)
    return a.compare(b)


def order(left: str, right: str) -> int:
    a, b = SemVer.parse(left), SemVer.parse(right)
    assert (a == b, a < b, a > b) == (a.compare(b) == 0, a.compare(b) < 0, a.compare(b) > 0)
    assert a != b or hash(a) == hash(b)
    return a.compare(b)


def ours(question: Question) -> Answer:
    result: Any
    try:
        match question:
            case {"quantity": text}:
                result = quantities(text, question.get("steps", []))
            case {"decode": value}:
                result = str(Quantity.from_json(value))
            case {"compare": [left, right]}:
                result = compare(left, right)
            case {"version": text}:
                result = version(text)
            case {"order": [left, right]}:
                result = order(left, right)
            case _:
                raise AssertionError(question)
    except (InvalidQuantity, InvalidVersion) as error:
        return {"error": str(error)}
    return {"result": result}


def differences(
    questions: list[Question],
    theirs: list[Answer],
    answer: Callable[[Question], Answer] = ours,
) -> list[str]:
    """One line for each question that is answered differently, with both answers."""
    assert len(questions) == len(theirs)
    found = []
    for question, expected in zip(questions, theirs, strict=True):
        actual = answer(question)
        refused = "error" in actual and "error" in expected
        if not refused and actual != expected:
            found.append(f"{json.dumps(question)}\n  ours   {actual}\n  theirs {expected}")
    return found


# --- the committed questions ---


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_committed_questions_are_answered_as_kubernetes_does() -> None:
    assert differences(lines(QUESTIONS), lines(ANSWERS)) == []


def test_every_wrong_answer_is_noticed() -> None:
    questions, answers = lines(QUESTIONS), lines(ANSWERS)
    for question, answer in zip(questions, answers, strict=True):
        for wrong in wrongly(answer):
            assert len(differences([question], [wrong])) == 1, (question, wrong)


def wrongly(answer: Answer) -> list[Answer]:
    """The answer, wrong in one place each time."""
    if "error" in answer:
        return [{"result": 0}]
    result = answer["result"]
    wrong: list[Answer] = [{"error": "no"}]
    if isinstance(result, int):
        wrong += [{"result": other} for other in {-1, 0, 1} - {result}]
    elif isinstance(result, dict):
        wrong += [{"result": {**result, name: None}} for name in result]
    elif isinstance(result, list):
        last = result[-1]
        wrong += [{"result": [*result[:-1], {**last, name: "?"}]} for name in last]
    return wrong


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("value", lambda q: q.nanos // 10**9),
        ("value", lambda q: -(-q.nanos // 10**9)),
        ("milli", lambda q: -(-q.nanos // 10**6)),
        ("text", lambda q: f"{q.nanos}n"),
        ("int64", lambda q: q.nanos // 10**9 if q.nanos % 10**9 == 0 else None),
    ],
)
def test_a_plausible_rule_that_is_not_the_right_one_is_noticed(
    name: str, spoilt: Callable[[Quantity], object]
) -> None:
    def answer(question: Question) -> Answer:
        correct = ours(question)
        if "quantity" in question and "result" in correct and len(correct["result"]) == 1:
            quantity = Quantity.parse(question["quantity"])
            if quantity.exponent < 100:
                correct["result"][0][name] = spoilt(quantity)
        return correct

    assert differences(lines(QUESTIONS), lines(ANSWERS), answer) != []


# --- random questions ---

POWERS = [10**n for n in (*range(10), 15, 17, 18, 19, 21, 30)]
POWERS += [2**n for n in (10, 20, 30, 31, 32, 40, 50, 53, 60, 62, 63, 64)]
NUMBERS = sorted({max(0, power + by) for power in POWERS for by in (-1, 0, 1)} | {8, 1032, 1028})
SUFFIXES = ["", "", "n", "u", "m", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
ALPHABET = " \teEinumkKMGTP+-.0123456789_x\u0663\u00e9"


def mutated(rng: random.Random, text: str) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(["", rng.choice(ALPHABET)]) + text[at + rng.randint(0, 1) :]


def a_number(rng: random.Random) -> int:
    return rng.choice(
        [rng.choice(NUMBERS), rng.randrange(2000), rng.randrange(10 ** rng.randint(1, 26))]
    )


def an_exponent(rng: random.Random) -> str:
    power = rng.choice([rng.randint(-12, 12), rng.randint(-40, 40), rng.randint(-300, 300)])
    if rng.random() < 0.05:
        power += rng.choice([2**32, -(2**32), 2**40])  # only 32 bits of it count
    if rng.random() < 0.02:
        power = rng.choice([2**63, -(2**63) - 1])
    plus = rng.choice(["", "+", "0"]) if power >= 0 else ""
    return rng.choice("eE") + plus + str(power)


def a_quantity(rng: random.Random) -> str:
    """A text with an exponent that Go can write out in reasonable time and memory, if any."""
    while True:
        text = some_text(rng)
        exponent = re.search(r"[eE]([+-]?[0-9]+)$", text)
        if exponent is None or abs((int(exponent[1]) + 2**31) % 2**32 - 2**31) <= 1000:
            return text


def some_text(rng: random.Random) -> str:
    if rng.random() < 0.05:
        return "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, 6)))
    whole = rng.choice(["", "", "", "0", "000"]) + str(a_number(rng))
    if rng.random() < 0.05:
        whole = ""
    fraction = ""
    if rng.random() < 0.35:
        digits = str(rng.randrange(10 ** rng.randint(1, 12)))
        fraction = "." + rng.choice(
            [digits, "0" * rng.randint(0, 12) + digits, "5", "", "000", "500"]
        )
    suffix = an_exponent(rng) if rng.random() < 0.2 else rng.choice(SUFFIXES)
    text = rng.choice(["", "", "", "-", "-", "+"]) + whole + fraction + suffix
    return mutated(rng, text) if rng.random() < 0.1 else text


def a_huge_quantity(rng: random.Random) -> str:
    """An exponent at the edges of 32 bits; only what Go can answer without writing it out."""
    number = rng.choice([1, 10, 999, 1000, rng.randint(1, 10**15)])
    power = rng.choice([2**31 - 1, 2**31 - 2, 2**31 - 3, 999_999_999, 2**32 + 2**31 - 1])
    return f"{rng.choice(['', '-'])}{number}e{power}"


def an_int64(rng: random.Random) -> int:
    number = min(a_number(rng), 2**63 - 1)
    return rng.choice([number, rng.randint(0, 9), -number, -(2**63)])


def a_step(rng: random.Random) -> dict[str, Any]:
    operation = rng.choice(["add", "sub", "mul", "times", "neg"])
    if operation == "neg":
        return {"op": "neg"}
    if operation == "mul":
        return {"op": "mul", "by": an_int64(rng)}
    return {"op": operation, "with": a_quantity(rng)}


def a_reading(rng: random.Random) -> Question:
    if rng.random() < 0.03:
        return {"quantity": a_huge_quantity(rng)}
    return {"quantity": a_quantity(rng)}


def a_decoding(rng: random.Random) -> Question:
    if rng.random() < 0.2:
        number = rng.choice([rng.randint(-(2**70), 2**70), rng.randint(-9, 9), rng.random(), 1e22])
        return {"decode": rng.choice([number, number, -0.0, 2.5e-7, True, False, [], {}])}
    space = rng.choice(["", " ", "  ", "\t", "\u00a0", "\u2003", "\u2028", "\x85", "\u200b", "\n"])
    return {"decode": rng.choice([space, ""]) + a_quantity(rng) + rng.choice([space, ""])}


def a_calculation(rng: random.Random) -> Question:
    text, steps = a_quantity(rng), [a_step(rng) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.05:  # the ends of int64, while Go still holds an int64
        text, factor = rng.choice([("1Ti", 2**23), ("4Gi", 2**31), ("1024", 2**53), ("8", 2**60)])
        steps.insert(0, {"op": "mul", "by": rng.choice([-factor, -factor, factor - 1])})
    return {"quantity": text, "steps": steps}


def a_comparison(rng: random.Random) -> Question:
    left = a_quantity(rng)
    right = a_quantity(rng)
    try:
        quantity = Quantity.parse(left)
        if rng.random() < 0.5:
            right = f"{quantity.nanos + rng.choice([-1, 0, 0, 1])}n"
    except InvalidQuantity:
        pass
    return {"compare": rng.choice([[left, right], [right, left]])}


PARTS = [0, 1, 2, 9, 10, 11, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**19, 10**20]
WORDS = ["alpha", "beta", "rc", "rc1", "a-b", "-", "--", "0a", "00a", "Z", "a", "-1", "1-"]
WRONG = ["", "01", "00", "a b", "\u00e9", "x_y", "\u0663", "+", "v1", " 1"]


def an_identifier(rng: random.Random, *, wrong: float = 0.02) -> str:
    if rng.random() < wrong:
        return rng.choice(WRONG)
    return rng.choice([rng.choice(WORDS), str(rng.choice(PARTS[:10])), str(rng.randint(0, 20))])


def a_version(rng: random.Random, core: str | None = None) -> str:
    if core is None:
        count = 3 if rng.random() < 0.97 else rng.randint(0, 5)
        large = rng.random() < 0.1
        parts = [str(rng.choice(PARTS if large else PARTS[:10])) for _ in range(count)]
        if rng.random() < 0.05 and parts:
            parts[rng.randrange(len(parts))] = rng.choice([*WRONG, "a", "-1"])
        core = ".".join(parts)
    text = core
    if rng.random() < 0.6:
        text += "-" + ".".join(an_identifier(rng) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.3:
        text += "+" + ".".join(an_identifier(rng) for _ in range(rng.randint(1, 3)))
    if rng.random() < 0.05:
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice("0123.+-a \u00e9_v") + text[at + rng.randint(0, 1) :]
    return text


def a_version_question(rng: random.Random) -> Question:
    return {"version": a_version(rng)}


def an_order(rng: random.Random) -> Question:
    core = rng.choice(["1.2.3", "1.2.3", "0.0.0", None])
    left, right = a_version(rng, core), a_version(rng, core)
    if rng.random() < 0.1:
        right = left.split("+")[0] + "+other.1"
    return {"order": [left, right]}


KINDS: dict[str, Callable[[random.Random], Question]] = {
    "reading": a_reading,
    "decoding": a_decoding,
    "calculation": a_calculation,
    "comparison": a_comparison,
    "version": a_version_question,
    "order": an_order,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("values") / "values"
    result = subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(binary), "."],
        cwd=GO_PROGRAM,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return binary


def ask(program: Path, questions: list[Question]) -> str:
    text = "".join(json.dumps(question) + "\n" for question in questions)
    result = subprocess.run(
        [str(program)], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.go
def test_the_committed_answers_are_those_of_the_go_program(program: Path) -> None:
    assert ask(program, lines(QUESTIONS)) == ANSWERS.read_text(encoding="utf-8")


@pytest.mark.go
def test_the_go_program_is_built_from_the_version_in_the_name_of_the_answers() -> None:
    required = (GO_PROGRAM / "go.mod").read_text(encoding="utf-8")
    assert f"k8s.io/apimachinery v{APIMACHINERY}\n" in required
    assert "github.com/blang/semver/v4 v4.0.0\n" in required


@pytest.mark.go
@pytest.mark.parametrize("kind", KINDS)
def test_random_questions_are_answered_as_kubernetes_does(kind: str, program: Path) -> None:
    seed = int(os.environ.get("DRAGOMAN_SEED") or random.randrange(2**32))
    count = 20_000 if os.environ.get("DRAGOMAN_SOAK") else 2_000
    rng = random.Random(f"{seed} {kind}")
    questions = [KINDS[kind](rng) for _ in range(count)]
    theirs = [json.loads(line) for line in ask(program, questions).splitlines()]
    mix = collections.Counter(
        aspect for pair in zip(questions, theirs, strict=True) for aspect in seen(*pair)
    )
    print(f"{kind}: seed {seed}, {count} questions, {dict(mix)}")  # noqa: T201
    assert not mix["panic"]
    assert 0.5 * count < mix["result"] < 0.99 * count, mix
    found = differences(questions, theirs)
    assert not found, f"seed {seed}: {len(found)} of {count} differ:\n" + "\n".join(found[:10])


def seen(question: Question, answer: Answer) -> list[str]:
    """What a question turned out to be about, for the mix that a run reports."""
    aspects = list(answer)
    result = answer.get("result")
    if isinstance(result, list):
        last = result[-1]
        aspects += [last["format"], "negative" if last["sign"] < 0 else "zero or more"]
        aspects += [step["op"] for step in question.get("steps", [])]
        aspects += ["int64"] if last["int64"] is not None else []
    elif isinstance(result, int):
        aspects.append(f"compares {result}")
    return aspects
