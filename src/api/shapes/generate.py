"""Makes C++ structures and tables from the botocore service models, for the shapes that the
operations in operations.txt reach.

usage: generate.py MODELS_DIR OPERATIONS_FILE SERVICE OUT_DIR

Writes OUT_DIR/SERVICE.hpp (structures) and OUT_DIR/SERVICE.cpp (tables of shapes/shape.hpp). Uses
the standard library only; the models are the JSON files inside the pinned botocore package, or ours
in the same form (models/), whose text the tables hold as well: clients must be given it.
Equal inputs give equal bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

# The root elements of S3's replies, which the model lacks. Clients in some languages check them.
ROOTS = {
    "s3": {
        "ListBucketsOutput": "ListAllMyBucketsResult",
        "ListObjectsOutput": "ListBucketResult",
        "ListObjectsV2Output": "ListBucketResult",
        "ListObjectVersionsOutput": "ListVersionsResult",
        "ListPartsOutput": "ListPartsResult",
        "ListMultipartUploadsOutput": "ListMultipartUploadsResult",
        "DeleteObjectsOutput": "DeleteResult",
        "CreateMultipartUploadOutput": "InitiateMultipartUploadResult",
        "CompleteMultipartUploadOutput": "CompleteMultipartUploadResult",
        "GetObjectAttributesOutput": "GetObjectAttributesResponse",
        "GetBucketAclOutput": "AccessControlPolicy",
        "GetObjectAclOutput": "AccessControlPolicy",
        "GetObjectTaggingOutput": "Tagging",
        "GetBucketTaggingOutput": "Tagging",
        "GetBucketVersioningOutput": "VersioningConfiguration",
        "GetBucketLoggingOutput": "BucketLoggingStatus",
        "GetBucketAccelerateConfigurationOutput": "AccelerateConfiguration",
        "GetBucketRequestPaymentOutput": "RequestPaymentConfiguration",
        "GetBucketCorsOutput": "CORSConfiguration",
        "GetBucketLifecycleConfigurationOutput": "LifecycleConfiguration",
        "GetBucketWebsiteOutput": "WebsiteConfiguration",
    }
}
# Outputs whose document is their only member, without an element around it.
UNWRAPPED = {"s3": ["GetBucketLocationOutput"]}
# Enumerations whose values the service accepts in upper and lower case. The documentation says so,
# and the model does not, so the operations check them.
ANY_CASE = {"batch": ["RetryAction"]}
# Enumerations of a thousand values, of which this server supports some: the operations check them.
# shapes/instance_types.hpp returns all values.
OPEN = {"ec2": ["InstanceType"]}

# The statuses of success that are in S3's documentation, but not in its model.
STATUSES = {"s3": {"PutBucketTagging": 204}}

KEYWORDS = set(
    """alignas and asm auto bool break case catch char class const constexpr continue default
    delete do double else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new not operator or private protected public register requires return
    short signed sizeof static struct switch template this throw true try typedef typename union
    unsigned using virtual void volatile while""".split()
)

SCALARS = {
    "string": ("string", "std::string"),
    "character": ("string", "std::string"),
    "blob": ("blob", "std::string"),
    "integer": ("integer", "int64_t"),
    "long": ("integer", "int64_t"),
    "float": ("floating", "double"),
    "double": ("floating", "double"),
    "boolean": ("boolean", "bool"),
    "timestamp": ("timestamp", "Instant"),
}

LOCATIONS = {
    None: "body",
    "header": "header",
    "headers": "prefixed_headers",
    "uri": "uri",
    "querystring": "query_string",
    "statusCode": "status_code",
}

FORMATS = {
    None: "unset",
    "iso8601": "iso8601",
    "rfc822": "http_date",
    "unixTimestamp": "epoch_seconds",
}


Model = dict[str, Any]  # a service's, as botocore keeps it


def fail(message: str) -> NoReturn:
    sys.exit("generate.py: " + message)


def load_model(models: str, service: str) -> Model:
    folder = os.path.join(models, service)
    if not os.path.isdir(folder):
        fail("no service '%s' in %s" % (service, models))
    version = sorted(os.listdir(folder))[-1]
    own = os.path.join(folder, version, "service-2.json")
    if os.path.exists(own):
        with open(own, encoding="utf-8") as file:
            words = file.read()
        own_model: Model = json.loads(words)
        return own_model | {"text": words, "version_folder": version}
    path = os.path.join(folder, version, "service-2.json.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        model: Model = json.load(file)
    return model


def flatten_members(model: Model) -> None:
    """Makes a separate shape for each list that is flattened in one member only."""
    shapes = model["shapes"]
    for shape in list(shapes.values()):
        for reference in shape.get("members", {}).values():
            name = reference["shape"]
            if not reference.get("flattened") or shapes[name].get("flattened"):
                continue
            reference["shape"] = name + "Flattened"
            shapes[name + "Flattened"] = {**shapes[name], "flattened": True}


def wanted_operations(path: str, service: str) -> list[str]:
    operations = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words and words[0] == service:
                operations.append(words[1])
    if not operations:
        fail("%s names no operation of '%s'" % (path, service))
    return operations


def snake(name: str) -> str:
    """TrainingJobName -> training_job_name, S3Uri -> s3_uri, VPCConfig -> vpc_config,
    ETag -> e_tag."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = name.replace("-", "_").lower()
    return name + "_" if name in KEYWORDS else name


def lower_camel(name: str) -> str:
    """The name of a member in the service's messages: trainingJobName, vpcConfig, s3OutputPath."""
    leading = re.match(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]+$|[A-Z]", name)
    if not leading:
        return name
    return leading.group(0).lower() + name[len(leading.group(0)) :]


def text(value: str) -> str:
    """A C++ string literal of any text; UTF-8 bytes beyond ASCII as octal escapes."""
    out = []
    for byte in value.encode("utf-8"):
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif 0x20 <= byte < 0x7F and char != "?":
            out.append(char)
        else:
            out.append("\\%03o" % byte)
    return '"%s"' % "".join(out)


def is_ec2(model: Model) -> bool:
    """Returns whether the service uses EC2's variant of the query protocol."""
    return bool(model["metadata"]["protocol"] == "ec2")


def query_name(model: Model, member: str, reference: Model) -> str:
    """The name of a member in requests of the query protocol."""
    name: str = reference.get("locationName", member)
    if not is_ec2(model):
        return name
    return str(reference.get("queryName", name[0].upper() + name[1:]))


# Members of outputs that this server never sends. They would make a list contain itself.
LEFT_OUT = {
    "FSx": {"AdministrativeAction": ("TargetVolumeValues", "TargetSnapshotValues")},
}


class Closure:
    """The shapes that the wanted operations reach, each after the shapes of its members."""

    def __init__(self, model: Model, operations: Sequence[str]) -> None:
        self.shapes = model["shapes"]
        for structure, members in LEFT_OUT.get(model["metadata"]["serviceId"], {}).items():
            for member in members:
                del self.shapes[structure]["members"][member]
        self.order: list[str] = []
        # (structure, member): the member closes a cycle, so it is owned by a pointer
        self.boxed: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.done: set[str] = set()
        for operation in operations:
            if operation not in model["operations"]:
                fail(
                    "operation '%s' not found in the model of %s"
                    % (operation, model["metadata"]["serviceId"])
                )
            for side in ("input", "output"):
                if side in model["operations"][operation]:
                    self.visit(model["operations"][operation][side]["shape"])

    def inside(self, name: str) -> Iterator[tuple[str, str]]:
        shape = self.shapes[name]
        for member, reference in shape.get("members", {}).items():
            yield member, reference["shape"]
        for side in ("member", "key", "value"):
            if side in shape:
                yield side, shape[side]["shape"]

    def visit(self, name: str) -> None:
        if name in self.done:
            return
        self.open.append(name)
        for member, inner in self.inside(name):
            if inner in self.open:
                # The elements of a vector or map may be incomplete types; a direct member may not.
                if self.shapes[name]["type"] == "structure":
                    if self.shapes[inner]["type"] != "structure":
                        fail(
                            "%s.%s: a cycle through a named list or map is not supported"
                            % (name, member)
                        )
                    self.boxed.add((name, member))
                continue
            self.visit(inner)
        self.open.pop()
        self.done.add(name)
        self.order.append(name)

    def cpp_type(self, name: str) -> str:
        shape = self.shapes[name]
        kind = shape["type"]
        if kind in SCALARS:
            return SCALARS[kind][1]
        if kind == "structure":
            return struct_name(name)
        if kind == "list":
            if self.shapes[shape["member"]["shape"]]["type"] == "boolean":
                fail("%s: a list of booleans has no address of its elements" % name)
            return "std::vector<%s>" % self.cpp_type(shape["member"]["shape"])
        if kind == "map":
            if self.shapes[shape["key"]["shape"]]["type"] != "string":
                fail("%s: a map by something else than strings" % name)
            return "std::map<std::string, %s>" % self.cpp_type(shape["value"]["shape"])
        fail("%s: a shape of kind '%s'" % (name, kind))


def struct_name(name: str) -> str:
    return name[0].upper() + name[1:]


def write_if_changed(path: str, content: str) -> None:
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == content:
                os.utime(path)
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def header(service: str, model: Model, operations: Sequence[str], closure: Closure) -> str:
    lines = [
        "// Made by shapes/generate.py from the botocore model of %s. Not to be edited." % service,
        "#pragma once",
        "",
        '#include "shapes/shape.hpp"',
        "",
        "namespace trainyard::api::shapes::%s {" % snake(service),
        "",
    ]
    structures = [name for name in closure.order if closure.shapes[name]["type"] == "structure"]
    lines += ["struct %s;" % struct_name(name) for name in structures] + [""]
    for name in structures:
        lines.append("struct %s {" % struct_name(name))
        for member, reference in closure.shapes[name].get("members", {}).items():
            inner = closure.cpp_type(reference["shape"])
            if (name, member) in closure.boxed:
                inner = "Box<%s>" % inner
            lines.append("  std::optional<%s> %s;" % (inner, snake(member)))
        lines += ["};", ""]
    lines += ["struct Nothing {};", "", "extern const Service kService;", ""]
    if "text" in model:
        lines += [
            "// The model itself, and where clients look for it below AWS_DATA_PATH.",
            "extern const std::string_view kModel;",
            "extern const std::string_view kModelPath;",
            "",
        ]
    for index, operation in enumerate(operations):
        shape = model["operations"][operation]
        sides = [
            struct_name(shape[side]["shape"]) if side in shape else "Nothing"
            for side in ("input", "output")
        ]
        lines += [
            "struct %s {" % operation,
            "  using Input = %s;" % sides[0].join(["shapes::%s::" % snake(service), ""]),
            "  using Output = %s;" % sides[1].join(["shapes::%s::" % snake(service), ""]),
            "  static const OperationShape& shape() { return kService.operations[%d]; }" % index,
            "};",
        ]
    lines += ["", "}  // namespace trainyard::api::shapes::%s" % snake(service), ""]
    return "\n".join(lines)


def tables(service: str, model: Model, operations: Sequence[str], closure: Closure) -> str:
    metadata = model["metadata"]
    index = {name: number for number, name in enumerate(closure.order)}
    lines = [
        "// Made by shapes/generate.py from the botocore model of %s. Not to be edited." % service,
        '#include "shapes/%s.hpp"' % service,
        *['#include "shapes/%ss.hpp"' % snake(name) for name in OPEN.get(service, [])],
        "",
        "// g++ and clang define offsetof for any structure without virtual bases.",
        '#pragma GCC diagnostic ignored "-Winvalid-offsetof"',
        "",
        "namespace trainyard::api::shapes::%s {" % snake(service),
        "namespace {",
        "",
        "using K = ShapeKind;",
        "using L = Location;",
        "using T = TimestampFormat;",
        "extern const Shape kShapes[%d];" % len(closure.order),
        "",
    ]
    patterns: dict[str, int] = {}
    body = []
    for name in closure.order:
        shape = closure.shapes[name]
        kind = shape["type"]
        fields = [
            ".kind = K::%s" % (SCALARS[kind][0] if kind in SCALARS else kind),
            ".name = " + text(name),
        ]
        for bound in ("min", "max"):
            if bound in shape and kind != "timestamp":
                fields.append(".%simum = %s" % (bound, repr(float(shape[bound]))))
        if "pattern" in shape and kind == "string":
            pattern = shape["pattern"]
            fields += [
                ".pattern = " + text(pattern),
                ".pattern_index = %d" % patterns.setdefault(pattern, len(patterns)),
            ]
        if "enum" in shape and name not in ANY_CASE.get(service, []) + OPEN.get(service, []):
            lines.append(
                "constexpr std::string_view kValues%d[] = {%s};"
                % (index[name], ", ".join(map(text, shape["enum"])))
            )
            fields.append(".values = kValues%d" % index[name])
        if "timestampFormat" in shape:
            fields.append(".timestamp_format = T::" + FORMATS[shape["timestampFormat"]])
        if kind == "structure":
            members = shape.get("members", {})
            required = shape.get("required", [])
            rows = []
            for member, reference in members.items():
                where = struct_name(name), snake(member)
                rows.append(
                    "  {%s, %s, %s, %s, &kShapes[%d], %s, L::%s, T::%s, %s, %s, %s,\n  "
                    " offsetof(%s, %s), &kAccess<decltype(%s::%s)>},"
                    % (
                        text(member),
                        text(lower_camel(member)),
                        text(reference.get("locationName", member)),
                        text(query_name(model, member, reference)),
                        index[reference["shape"]],
                        "true" if member in required else "false",
                        LOCATIONS[reference.get("location")],
                        FORMATS[reference.get("timestampFormat")],
                        "true" if reference.get("streaming") else "false",
                        "true" if reference.get("xmlAttribute") else "false",
                        "true" if "locationName" in reference else "false",
                        *where,
                        *where,
                    )
                )
            if rows:
                lines += ["constexpr Member kMembers%d[] = {" % index[name]] + rows + ["};"]
                fields.append(".members = kMembers%d" % index[name])
            if "payload" in shape:
                fields.append(
                    ".payload = &kMembers%d[%d]"
                    % (index[name], list(members).index(shape["payload"]))
                )
            if shape.get("union"):
                fields.append(".is_union = true")
            root = ROOTS.get(service, {}).get(name, shape.get("locationName"))
            if root:
                fields.append(".xml_name = " + text(root))
            if name in UNWRAPPED.get(service, []):
                fields.append(".unwrapped = true")
        if kind == "list":
            inner = closure.cpp_type(shape["member"]["shape"])
            fields += [
                ".element = &kShapes[%d]" % index[shape["member"]["shape"]],
                ".flattened = %s" % ("true" if shape.get("flattened") else "false"),
                ".flattened_in_query = %s"
                % ("true" if shape.get("flattened") or is_ec2(model) else "false"),
                ".element_name = " + text(shape["member"].get("locationName", "member")),
                ".append = append_to<%s>" % inner,
                ".size = size_of<std::vector<%s>>" % inner,
                ".at = at_of<%s>" % inner,
            ]
        if kind == "map":
            inner = closure.cpp_type(shape["value"]["shape"])
            fields += [
                ".element = &kShapes[%d]" % index[shape["value"]["shape"]],
                ".key = &kShapes[%d]" % index[shape["key"]["shape"]],
                ".flattened = %s" % ("true" if shape.get("flattened") else "false"),
                ".key_name = " + text(shape["key"].get("locationName", "key")),
                ".value_name = " + text(shape["value"].get("locationName", "value")),
                ".size = size_of<std::map<std::string, %s>>" % inner,
                ".insert = insert_into<%s>" % inner,
                ".each = each_of<%s>" % inner,
            ]
        body.append("  {%s}," % ", ".join(fields))
    lines += ["", "constinit const Shape kShapes[%d] = {" % len(closure.order)] + body + ["};", ""]
    lines.append("constexpr OperationShape kOperations[] = {")
    for operation in operations:
        shape = model["operations"][operation]
        sides = [
            "&kShapes[%d]" % index[shape[side]["shape"]] if side in shape else "nullptr"
            for side in ("input", "output")
        ]
        lines.append(
            "  {&kService, %s, %s, %s, %d, %s, %s, kLifetime<%s>, %s},"
            % (
                text(operation),
                text(shape["http"]["method"]),
                text(shape["http"]["requestUri"]),
                STATUSES.get(service, {}).get(operation, shape["http"].get("responseCode", 200)),
                sides[0],
                sides[1],
                struct_name(shape["input"]["shape"]) if "input" in shape else "Nothing",
                text(shape.get("output", {}).get("resultWrapper", "")),
            )
        )
    lines += ["};", ""]
    # If an S3 request has two names, the deprecated one is left out.
    absent = [
        name
        for name in sorted(model["operations"])
        if name not in operations
        and not (service == "s3" and model["operations"][name].get("deprecated"))
    ]
    if absent:
        lines.append("constexpr AbsentOperation kAbsent[] = {")
        for name in absent:
            http = model["operations"][name]["http"]
            lines.append(
                "  {%s, %s, %s}," % (text(name), text(http["method"]), text(http["requestUri"]))
            )
        lines += ["};", ""]
    protocols = metadata.get("protocols", [metadata["protocol"]])
    lines += [
        "}  // namespace",
        "",
        "constinit const Service kService = {",
        "  %s, %s, %s, %s, %s, %s,"
        % (
            text(service),
            text(metadata.get("signingName", metadata["endpointPrefix"])),
            text(metadata.get("targetPrefix", "")),
            text(metadata.get("jsonVersion", "")),
            text(metadata["apiVersion"]),
            text(
                metadata.get(
                    "xmlNamespace",
                    "http://s3.amazonaws.com/doc/2006-03-01/" if service == "s3" else "",
                )
            ),
        ),
        "  %s, %s, %s, kOperations, %d, %s};"
        % (
            "true" if "query" in protocols or is_ec2(model) else "false",
            "true" if is_ec2(model) else "false",
            "true" if "awsQueryCompatible" in metadata else "false",
            len(patterns),
            "kAbsent" if absent else "{}",
        ),
        "",
    ]
    for name in OPEN.get(service, []):
        lines += [
            "std::span<const std::string_view> %s_values() {" % snake(name),
            "  static constexpr std::string_view kValues[] = {%s};"
            % ", ".join(map(text, model["shapes"][name]["enum"])),
            "  return kValues;",
            "}",
            "",
        ]
    if "text" in model:
        lines += (
            ["constinit const std::string_view kModel ="]
            + ["    " + text(line) for line in model["text"].splitlines(True)]
            + ["    ;"]
        )
        lines += [
            "constinit const std::string_view kModelPath = %s;"
            % text("%s/%s/service-2.json" % (service, model["version_folder"])),
            "",
        ]
    lines += ["}  // namespace trainyard::api::shapes::%s" % snake(service), ""]
    return "\n".join(lines)


def main() -> None:
    if len(sys.argv) != 5:
        fail("usage: generate.py MODELS_DIR OPERATIONS_FILE SERVICE OUT_DIR")
    models, operations_file, service, out = sys.argv[1:]
    model = load_model(models, service)
    flatten_members(model)
    operations = wanted_operations(operations_file, service)
    closure = Closure(model, operations)
    os.makedirs(out, exist_ok=True)
    write_if_changed(
        os.path.join(out, service + ".hpp"), header(service, model, operations, closure)
    )
    write_if_changed(
        os.path.join(out, service + ".cpp"), tables(service, model, operations, closure)
    )


if __name__ == "__main__":
    main()
