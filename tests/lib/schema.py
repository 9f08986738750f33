# SPDX-License-Identifier: GPL-2.0-or-later
"""A validator for the part of JSON Schema that our schemas use; an unknown keyword is an error, not ignored."""
import json
import re

KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required", "items", "enum", "const",
         "additionalProperties", "pattern", "minimum", "minItems", "anyOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def errors(value, schema, root=None, at="$"):
    """What is wrong with value, as a list of sentences."""
    root = root or schema
    if schema is True:
        return []
    unknown = set(schema) - KNOWN
    if unknown:
        return ["%s: schema has unknown keywords %s" % (at, sorted(unknown))]
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        return errors(value, target, root, at)
    out = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        return ["%s: %r is not %s" % (at, value, " or ".join(types))]
    if "anyOf" in schema and all(errors(value, s, root, at) for s in schema["anyOf"]):
        out.append("%s: fits none of anyOf" % at)
    if "enum" in schema and value not in schema["enum"]:
        out.append("%s: %r is none of %r" % (at, value, schema["enum"]))
    if "const" in schema and value != schema["const"]:
        out.append("%s: %r is not %r" % (at, value, schema["const"]))
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        out.append("%s: %r does not match %s" % (at, value, schema["pattern"]))
    if is_type(value, "number") and value < schema.get("minimum", value):
        out.append("%s: %r is less than %r" % (at, value, schema["minimum"]))
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            out.append("%s: too few items" % at)
        for i, v in enumerate(value):
            out += errors(v, schema.get("items", True), root, "%s[%d]" % (at, i))
    if isinstance(value, dict):
        known = schema.get("properties", {})
        out += ["%s: %s is missing" % (at, k) for k in schema.get("required", []) if k not in value]
        for k, v in value.items():
            if k in known:
                out += errors(v, known[k], root, "%s.%s" % (at, k))
            elif schema.get("additionalProperties", True) is False:
                out.append("%s: %s is not in the schema" % (at, k))
            elif isinstance(schema.get("additionalProperties"), dict):
                out += errors(v, schema["additionalProperties"], root, "%s.%s" % (at, k))
    return out


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)
