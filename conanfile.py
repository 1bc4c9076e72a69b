# SPDX-License-Identifier: Apache-2.0
#
# mica for Conan 2: headers, the units of the vector kernels, and the CMake functions that compile these. Targets are
# those of mica's own CMake package. An option is a part of the library (docs/project.md); the package is the same
# with and without, since a part is a target and what it needs. With the option kernels, the package has the compiled
# kernels too, and is one for each setting.
#
#   conan create .        builds, and proves it by packaging/conan/test_package

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout
from conan.tools.scm import Version

required_conan_version = ">=2.0"


class MicaConan(ConanFile):
    name = "mica"
    description = "Inference components for language models on CPUs"
    license = "Apache-2.0"
    topics = ("llm", "inference", "gguf", "transformer", "quantization", "simd", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {part: [True, False] for part in ("text", "checksum", "server", "eigen", "xsimd", "kernels")}
    default_options = {"text": True, "checksum": True, "server": False, "eigen": False, "xsimd": False,
                       "kernels": False}
    exports = "CMakeLists.txt"
    exports_sources = "CMakeLists.txt", "LICENSE", "include/*", "cmake/*"
    test_package_folder = os.path.join("packaging", "conan", "test_package")
    no_copy_source = True

    # A part: the packages that it requires, and those of their components that it links.
    _parts = {
        "text": {"pcre2/[>=10.40 <11]": ["pcre2::pcre2-8"],
                 "nlohmann_json/[>=3.11 <4]": ["nlohmann_json::nlohmann_json"]},
        "checksum": {"xxhash/[>=0.8.1 <0.9]": ["xxhash::xxhash"]},
        "server": {"cpp-httplib/[>=0.11.4 <1]": ["cpp-httplib::cpp-httplib"],
                   "openssl/[>=3 <4]": ["openssl::ssl", "openssl::crypto"]},
        "eigen": {"eigen/[>=3.4 <6]": ["eigen::eigen"]},
        "xsimd": {"xsimd/[>=13 <15]": ["xsimd::xsimd"]},
    }
    _compilers = {"gcc": "12", "clang": "14", "apple-clang": "15"}

    def _project(self, word):
        """A value of the call of project() in CMakeLists.txt, which alone states the version."""
        text = load(self, os.path.join(self.recipe_folder, "CMakeLists.txt"))
        found = re.search(rf'^project\(mica\b[^)]*\b{word} "?([^"\s)]+)', text, re.MULTILINE)
        return found.group(1) if found else None

    def set_version(self):
        self.version = self.version or self._project("VERSION")

    def init(self):
        self.homepage = self._project("HOMEPAGE_URL")
        self.url = self.homepage

    def configure(self):
        if self.options.kernels:
            self.package_type = "static-library"
        if self.options.server:
            self.options["cpp-httplib"].with_openssl = True

    def layout(self):
        basic_layout(self)

    def requirements(self):
        # Headers of mica include those of what it requires; Highway is also linked, by all who link mica.
        self.requires("highway/[>=1.2 <2]", transitive_headers=True, transitive_libs=True)
        for part, packages in self._parts.items():
            if self.options.get_safe(part):
                for package in packages:
                    self.requires(package, transitive_headers=True, transitive_libs=True)

    def package_id(self):
        if self.info.options.kernels:
            for part in self._parts:
                delattr(self.info.options, part)
        else:
            self.info.clear()

    def validate(self):
        if self.settings.os == "Windows":
            raise ConanInvalidConfiguration("mica does not run on Windows; Linux and macOS are supported")
        if self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration(f"mica is for x86_64 and armv8, not for {self.settings.arch}")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)
        compiler = str(self.settings.compiler)
        oldest = self._compilers.get(compiler)
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(
                f"mica needs {compiler} {oldest} or newer, not {self.settings.compiler.version}")

    def generate(self):
        if self.options.kernels:
            toolchain = CMakeToolchain(self)
            for switch in ("PROGRAM", "TESTS", "EXAMPLES", "BENCH"):
                toolchain.cache_variables[f"MICA_BUILD_{switch}"] = False
            toolchain.cache_variables["MICA_INSTALL"] = False
            toolchain.cache_variables["MICA_WITH"] = "none"
            toolchain.generate()
            CMakeDeps(self).generate()

    def build(self):
        if self.options.kernels:
            cmake = CMake(self)
            cmake.configure()
            cmake.build(target="mica_kernels")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "mica-kernels.cmake", os.path.join(self.source_folder, "cmake"),
             os.path.join(self.package_folder, "lib", "cmake"))
        copy(self, "libmica_kernels.a", self.build_folder, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "mica")
        self.cpp_info.set_property("cmake_target_name", "mica::all")
        self.cpp_info.set_property("pkg_config_name", "mica-all")
        self.cpp_info.set_property("cmake_build_modules", [os.path.join("lib", "cmake", "mica-kernels.cmake")])

        core = self._component("core", "mica", ["highway::hwy"])
        core.set_property("pkg_config_name", "mica")
        core.cxxflags = ["-ffp-contract=off"]
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        self._component("jinja", "jinja", [])
        self._component("tools", "tools", ["core"])
        for part, packages in self._parts.items():
            if self.options.get_safe(part):
                component = self._component(part, part, ["core"] + sum(packages.values(), []))
                component.defines = [f"MICA_HAS_{part.upper()}=1"]
                if part == "text":
                    component.requires.append("jinja")
        if self.options.kernels:
            kernels = self._component("kernels", "kernels", ["core"])
            kernels.libs = ["mica_kernels"]
            kernels.libdirs = ["lib"]

    def _component(self, name, target, requires):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"mica::{target}")
        component.set_property("pkg_config_name", f"mica-{target}")
        component.requires = requires
        component.bindirs = []
        component.libdirs = []
        return component
