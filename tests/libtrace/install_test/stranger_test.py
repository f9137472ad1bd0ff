#!/usr/bin/env python3
"""The steps of a new user: installs libtrace into an empty folder, static and
shared, and builds its examples against it with pkg-config and CMake, from C, C++17, C++20 and Python.

usage: stranger_test.py BUILD_DIRECTORY SOURCE_DIRECTORY
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
EXAMPLES = SOURCE / "libtrace/examples"
GENERATOR = ["-G", "Ninja"] if shutil.which("ninja") else []
CACHE = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []


def run(*command, **options):
    """Standard output of a command, which is shown if it fails."""
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}")
    return result.stdout


def install_shared(folder):
    run("cmake", "-S", SOURCE, "-B", folder / "shared-build", *GENERATOR, *CACHE, "-DBUILD_SHARED_LIBS=ON",
        "-DTRACEKIT_BUILD_TLPARSE=OFF", "-DTRACEKIT_WITH_TORCH=OFF", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--no-undefined", "-DCMAKE_INSTALL_LIBDIR=lib")
    run("cmake", "--build", folder / "shared-build")
    prefix = folder / "shared"
    run("cmake", "--install", folder / "shared-build", "--prefix", prefix)
    return prefix


def library_folder(prefix):
    return next(prefix.glob("lib*/**/pkgconfig")).parent


def environment(prefix, **more):
    libraries = library_folder(prefix)
    return {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries), **more}


def flags(prefix, *options):
    return run("pkg-config", *options, env=environment(prefix)).split()


def check_trace(program, prefix, folder, expected):
    trace = folder / ("trace-" + pathlib.Path(program[-1]).name + "-" + prefix.name)
    run(*program, env=environment(prefix, TORCH_TRACE=str(trace)))
    logs = list(trace.glob("dedicated_log_torch_trace_*.log"))
    assert len(logs) == 1, (program, logs)
    text = logs[0].read_text()
    for part in ('"libtrace_version"', *expected):
        assert part in text, f"{part} is not in the trace of {program}"
    silent = {name: value for name, value in environment(prefix).items() if name not in ("TORCH_TRACE", "TORCH_DTRACE")}
    run(*program, env=silent, cwd=folder)


def build_with_pkg_config(prefix, folder):
    compile_records = ('"dynamo_start"', '"compilation_metrics"', '"acme_plan"', '"lower"')
    for source, compiler in (("first_trace.c", ["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]),
                             ("first_trace_17.cc", ["c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])):
        program = folder / (source.replace(".", "_") + "-" + prefix.name)
        run(*compiler, EXAMPLES / source, *flags(prefix, "--cflags", "--libs", "torchtrace"), "-o", program)
        check_trace([program], prefix, folder, compile_records)


def build_with_cmake(prefix, folder):
    """The program in the README, in C++20; and a program of all components."""
    project = folder / f"cmake-{prefix.name}"
    project.mkdir()
    readme = (SOURCE / "libtrace/README.md").read_text()
    (project / "first_trace.cc").write_text(re.search(r"```c\+\+\n(#include <libtrace/compile.h>.*?)```", readme, re.S)[1])
    (project / "components.cc").write_text(
        "#include <libtrace/cache/compile_cache.h>\n#include <libtrace/cuda/cuda_activity.h>\n"
        "int main() {\n  libtrace::CompileCache cache(libtrace::CompileCacheOptions{});\n"
        "  libtrace::CudaActivity activity;\n  return activity.status().ok();\n}\n")
    (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(libtrace REQUIRED COMPONENTS core cache cuda)
add_executable(first_trace first_trace.cc)
target_compile_features(first_trace PRIVATE cxx_std_20)
target_link_libraries(first_trace PRIVATE libtrace::core)
add_executable(components components.cc)
set_target_properties(components PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
target_link_libraries(components PRIVATE libtrace::cache libtrace::cuda)
""")
    run("cmake", "-S", project, "-B", project / "build", *GENERATOR, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", project / "build")
    check_trace([project / "build/first_trace"], prefix, folder, ('"dynamo_start"', '"my_pass"'))
    run(project / "build/components", env=environment(prefix))


def missing_component_is_named(prefix, folder):
    project = folder / f"missing-{prefix.name}"
    project.mkdir()
    (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES CXX)
find_package(libtrace COMPONENTS core torch nonsense)
if(libtrace_FOUND)
  message(FATAL_ERROR "found what is not there")
endif()
""")
    said = " ".join(run("cmake", "-S", project, "-B", project / "build", *GENERATOR, f"-DCMAKE_PREFIX_PATH={prefix}").split())
    assert "component torch: this libtrace was built without it" in said, said
    assert "component nonsense: there is none of this name" in said, said
    assert not (prefix / "include/libtrace/torch").exists(), "headers of what was not built are installed"


def exported_names(prefix):
    said = run("nm", "-D", "--defined-only", "--with-symbol-versions", library_folder(prefix) / "libtorchtrace.so.0")
    names = [line.split()[-1] for line in said.splitlines()]
    c_names = {name.split("@")[0] for name in names if name.endswith("@@TORCHTRACE_0") and name.startswith("libtrace_")}
    header = (SOURCE / "libtrace/include/libtrace/libtrace.h").read_text()
    declared = set(re.findall(r"^[a-z][\w* ]*\b(libtrace_\w+)\(", header, re.M))
    assert c_names == declared, f"exported and declared differ: {c_names ^ declared}"
    foreign = [name for name in names if not name.startswith("libtrace_") and "8libtrace" not in name and
               not name.startswith("TORCHTRACE_")]
    assert not foreign, f"names that are not ours are exported: {foreign[:5]}"


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    static, shared = folder / "static", install_shared(folder)
    run("cmake", "--install", BUILD, "--prefix", folder / "installed")
    (folder / "installed").rename(static)  # .pc files find their prefix from where they lie
    assert list(static.glob("lib*/**/libtorchtrace.a")), "no libtorchtrace.a"
    for prefix in (static, shared):
        build_with_pkg_config(prefix, folder)
        build_with_cmake(prefix, folder)
    missing_component_is_named(shared, folder)
    exported_names(shared)
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", EXAMPLES / "gpu_copies.cc",
        *flags(shared, "--cflags", "--libs", "torchtrace_cuda"), "-ldl", "-o", folder / "gpu_copies")
    for example, language in (("first_trace.py", sys.executable),):
        if (EXAMPLES / example).exists():
            check_trace([language, EXAMPLES / example], shared, folder, ('"dynamo_start"', '"compilation_metrics"'))
    if (EXAMPLES / "dlopen_trace.c").exists():
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", EXAMPLES / "dlopen_trace.c", "-ldl", "-o", folder / "dlopen_trace")
        check_trace([folder / "dlopen_trace"], shared, folder, ('"dynamo_start"', '"compilation_metrics"'))
print("installed, found, built and traced, static and shared, from C, C++17, C++20 and Python")
