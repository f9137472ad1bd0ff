#!/usr/bin/env python3
"""libtrace by Conan, Bazel and vcpkg: builds the package from this checkout, and the example against it. What is not here is skipped, with a
word; without vcpkg its port is run with a stand-in for the functions that it calls.

usage: packagers_test.py SOURCE_DIRECTORY      environment: CONAN, BAZEL, VCPKG (the programs, if they are not on PATH)

Conan 2 is to be had from PyPI (pip install conan), Bazel 4 from Debian (bazel-bootstrap bazel-platforms bazel-rules-java
bazel-rules-proto), without a network: rules_cc of Debian is too new for it, so the five rules that are needed stand in.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
RULES = pathlib.Path("/usr/share/bazel")
PROGRAM = """#include <libtrace/cache/compile_cache.h>
#include <libtrace/cuda/cuda_activity.h>
#include <libtrace/otel/otel_sink.h>
int main() {
  libtrace::CompileCache cache(libtrace::CompileCacheOptions{});
  libtrace::CudaActivity activity;
  return activity.status().ok();
}
"""


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-6000:]}")
    return result.stdout


def check_programs(first, components, folder):
    trace = folder / "trace"
    run(first, env={**os.environ, "TORCH_TRACE": str(trace)})
    log, = trace.glob("dedicated_log_torch_trace_*.log")
    text = log.read_text()
    version = re.search(r"project\(tracekit VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    for part in (f'"libtrace_version": "{version}"', '"dynamo_start"', '"compilation_metrics"'):
        assert part in text, f"{part} is not in {log}"
    run(components)


def with_conan(conan, folder):
    environment = {**os.environ, "CONAN_HOME": str(folder / "home")}
    run(conan, "profile", "detect", env=environment)
    options = ["-nr", "-c", "tools.cmake.cmaketoolchain:generator=Ninja"]
    said = run(conan, "create", SOURCE / "libtrace", *options, env=environment)
    reference = re.search(r"libtrace/[0-9.]+", said)[0]
    run(conan, "install", f"--requires={reference}", "-g", "CMakeToolchain", "-of", folder / "conan", *options, env=environment, cwd=folder)
    build_with_cmake(folder, f"-DCMAKE_TOOLCHAIN_FILE={folder / 'conan/conan_toolchain.cmake'}")


def with_vcpkg(vcpkg, folder):
    port = SOURCE / "libtrace/vcpkg"
    if vcpkg is None:
        print("vcpkg is not on this machine: its port was run with a stand-in for vcpkg's functions")
        run("cmake", f"-DPORT_FOLDER={port / 'libtrace'}", f"-DCURRENT_PACKAGES_DIR={folder / 'packages'}", f"-DBUILD_FOLDER={folder / 'built'}",
            "-P", SOURCE / "tests/libtrace/install_test/vcpkg_stand_in.cmake")
        build_with_cmake(folder, f"-DCMAKE_PREFIX_PATH={folder / 'packages'}")
        return
    run(vcpkg, "install", "libtrace", f"--overlay-ports={port}", f"--x-install-root={folder / 'installed'}", "--binarysource=clear")
    root = os.environ.get("VCPKG_ROOT") or pathlib.Path(vcpkg).resolve().parent
    build_with_cmake(folder, f"-DCMAKE_TOOLCHAIN_FILE={root}/scripts/buildsystems/vcpkg.cmake", f"-DVCPKG_INSTALLED_DIR={folder / 'installed'}",
                     "-DVCPKG_MANIFEST_MODE=OFF")


def build_with_cmake(folder, *options):
    project = folder / "project"
    project.mkdir()
    shutil.copy(SOURCE / "libtrace/examples/first_trace_17.cc", project)
    (project / "components.cc").write_text(PROGRAM)
    (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(libtrace REQUIRED COMPONENTS core cache cuda otel)
foreach(name first_trace_17 components)
  add_executable(${name} ${name}.cc)
  target_link_libraries(${name} PRIVATE libtrace::cache libtrace::cuda libtrace::otel)
endforeach()
""")
    run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", project / "build")
    check_programs(project / "build/first_trace_17", project / "build/components", folder)


def with_bazel(bazel, folder):
    project, rules = folder / "project", folder / "rules_cc"
    (rules / "cc").mkdir(parents=True)
    (rules / "WORKSPACE").touch()
    (rules / "cc/BUILD").touch()
    (rules / "cc/defs.bzl").write_text("".join(f"{name} = native.{name}\n" for name in (
        "cc_library", "cc_binary", "cc_toolchain", "cc_toolchain_suite", "cc_toolchain_alias", "cc_libc_top_alias")) + "compiler_flag = None\ncc_flags_supplier = None\n")
    project.mkdir()
    (project / "WORKSPACE").write_text(f'local_repository(name = "libtrace", path = "{SOURCE / "libtrace"}")\n')
    shutil.copy(SOURCE / "libtrace/examples/first_trace_17.cc", project)
    (project / "components.cc").write_text(PROGRAM)
    (project / "BUILD").write_text("".join(
        f'cc_binary(name = "{name}", srcs = ["{name}.cc"], copts = ["-std=c++17"], deps = ["@libtrace//:cache", "@libtrace//:cuda", "@libtrace//:otel"])\n'
        for name in ("first_trace_17", "components")))
    repositories = {"rules_cc": rules, "platforms": RULES / "tools/platforms", "rules_java": RULES / "rules/java", "rules_proto": RULES / "rules/proto"}
    run(bazel, "--batch", f"--output_user_root={folder / 'root'}", "build", "--jobs=2",
        *(f"--override_repository={name}={path}" for name, path in repositories.items() if path.exists()),
        "//:first_trace_17", "//:components", cwd=project)
    check_programs(project / "bazel-bin/first_trace_17", project / "bazel-bin/components", folder)


tried = []
for name, build in (("conan", with_conan), ("bazel", with_bazel), ("vcpkg", with_vcpkg)):
    program = os.environ.get(name.upper()) or shutil.which(name)
    if program is None and name != "vcpkg":
        print(f"{name} is not on this machine: skipped")
        continue
    with tempfile.TemporaryDirectory() as scratch:
        try:
            build(program, pathlib.Path(scratch))
        finally:
            run("chmod", "-R", "u+w", scratch)  # Bazel's files are read-only
    tried.append(name)
print("built, linked and traced:", ", ".join(tried))
