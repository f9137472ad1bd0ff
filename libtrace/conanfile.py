"""libtrace as a Conan package: `conan create libtrace` in a checkout. Consumers use find_package(libtrace)."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy


class Libtrace(ConanFile):
    name = "libtrace"
    description = "Structured traces from C and C++ programs that compile and run models"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "with_redis": [True, False]}
    default_options = {"shared": False, "with_redis": True}

    def set_version(self):
        with open(os.path.join(self.recipe_folder, "..", "CMakeLists.txt")) as file:
            self.version = re.search(r"project\(tracekit VERSION (\S+)", file.read())[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..")
        for pattern in ("CMakeLists.txt", "libtrace/*", "scripts/packages.cmake"):
            copy(self, pattern, root, self.export_sources_folder)

    def system_requirements(self):
        """OpenSSL is the system's, as for every other program of it."""
        from conan.tools.system.package_manager import Apt, Dnf
        Apt(self).check(["libssl-dev"])
        Dnf(self).check(["openssl-devel"])

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables.update({"TRACEKIT_BUILD_TLPARSE": False, "TRACEKIT_WITH_TORCH": "OFF",
                                          "TRACEKIT_WITH_REDIS": bool(self.options.with_redis)})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package brings its own libtraceConfig.cmake, with components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "libtrace")]
        self.cpp_info.libs = ["torchtrace_otel", "torchtrace_cuda", "torchtrace_cache", "torchtrace"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["ssl", "crypto", "pthread", "dl"]
