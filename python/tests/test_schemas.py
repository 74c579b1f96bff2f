"""Documents pass the JSON Schemas that are published for them, and others do not."""

import json
import re
import unittest
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from .place import ALL, PLACE, ROOT

FORMATS = ROOT / "docs" / "formats"


class Yaml12(yaml.SafeLoader):
    """YAML 1.2, as editors and plimsoll have it: `on` is no truth value, but a field of ours."""


Yaml12.yaml_implicit_resolvers = {
    sign: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
    ]
    for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def validator(schema: str) -> Draft202012Validator:
    document = json.loads((FORMATS / schema).read_text())
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


def workloads() -> list[Path]:
    found = [*(ROOT / "workloads").glob("*.yaml"), *(ROOT / "docs" / "workloads").glob("*.yaml")]
    return sorted(found)


class Schemas(unittest.TestCase):
    def assert_valid(self, schema: Draft202012Validator, document: Any, what: str) -> None:
        errors = [
            f"{list(error.path)}: {error.message[:200]}" for error in schema.iter_errors(document)
        ]
        self.assertEqual(errors, [], what)

    def test_every_workload_passes(self) -> None:
        schema = validator("workload-2.json")
        files = workloads()
        self.assertGreater(len(files), 20)
        for path in files:
            document = yaml.load(path.read_text(), Yaml12)  # noqa: S506
            self.assert_valid(schema, document, path.name)

    def test_a_wrong_field_does_not_pass(self) -> None:
        schema = validator("workload-2.json")
        path = ROOT / "docs" / "workloads" / "mixed.yaml"
        document = yaml.load(path.read_text(), Yaml12)  # noqa: S506
        document["stages"][0]["durration"] = "1s"
        self.assertFalse(schema.is_valid(document))

    def test_every_workload_names_its_schema_to_editors(self) -> None:
        for path in workloads():
            line = path.read_text().splitlines()[0]
            named = line.removeprefix("# yaml-language-server: $schema=")
            self.assertNotEqual(named, line, path)
            self.assertEqual((path.parent / named).resolve(), FORMATS / "workload-2.json", path)

    def test_documents_of_runs_pass(self) -> None:
        for name in ALL:
            for schema, path in (
                ("run.schema.json", PLACE / name / "run.json"),
                ("summary.schema.json", PLACE / name / "summary.json"),
                ("report.schema.json", PLACE / f"{name}.report.json"),
            ):
                self.assert_valid(
                    validator(schema), json.loads(path.read_text()), f"{name}: {schema}"
                )
