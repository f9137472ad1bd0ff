#!/usr/bin/env python3
"""A misuse of a template does not compile, and the first error says what to write; the use beside it compiles.

usage: test_static_asserts.py COMPILER SOURCE_DIRECTORY
"""
import subprocess
import sys

COMPILER, SOURCE = sys.argv[1:]
HEADERS = ("trace.h", "artifacts/cache_event.h", "artifacts/model_load.h", "artifacts/package.h")
# Misuse, use, what the error says.
CASES = (
    ('Emit("acme", [](int) {});', 'Emit("acme", [](libtrace::MetadataWriter& json) { json.String("x"); });', "write the metadata as"),
    ('Emit("acme", 5);', 'Emit("acme", [](libtrace::JsonWriter& json) { json.BeginObject().EndObject(); });', "write the metadata as"),
    ('EmitArtifact("acme", "json", std::string("{}"));', 'EmitArtifact("acme", "json", [](libtrace::Payload& p) { p.text() = "{}"; });',
     "write the payload as"),
    ('EmitJsonArtifact("acme", libtrace::JsonStyle::kOneLine, [] { return 1; });',
     'EmitJsonArtifact("acme", libtrace::JsonStyle::kOneLine, [](libtrace::JsonWriter& json) { json.BeginObject().EndObject(); });',
     "write the JSON as"),
    ('EmitPackage([](libtrace::ModelLoad&) {});', 'EmitPackage([](libtrace::Package& p) { p.path = "a"; });', "write the function as"),
    ('EmitModelLoad([] {});', 'libtrace::ModelLoad load; EmitModelLoad(load);', "write the function as"),
    ('EmitCacheEvent("acme", libtrace::CacheState::kHit, 7);',
     'EmitCacheEvent("acme", libtrace::CacheState::kHit, [](libtrace::CacheInfo& info) { info.key = "k"; });', "write the function as"),
)


def errors(code):
    text = "".join(f"#include <libtrace/{header}>\n" for header in HEADERS) + "#include <string>\nusing namespace libtrace;\nvoid F() {\n" + code + "\n}\n"
    done = subprocess.run([COMPILER, "-std=c++17", "-fsyntax-only", f"-I{SOURCE}/libtrace/include", "-x", "c++", "-"], input=text,
                          capture_output=True, text=True, check=False)
    return [line for line in done.stderr.splitlines() if "error:" in line]


for misuse, use, said in CASES:
    found = errors(misuse)
    assert found and said in found[0], (misuse, found)
    assert not errors(use), (use, errors(use))
print(len(CASES), "misuses say what to write")
