# SPDX-License-Identifier: Apache-2.0
#
# Builds the consumer of tests/packaging, whose model has an allocator and a weight format of its own, with what Conan
# generates, and runs it. The parts are those of the package's options.

import io
import os

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class MicaTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        options = self.dependencies["mica"].options
        toolchain = CMakeToolchain(self)
        parts = [part for part in ("text", "checksum", "server", "eigen", "xsimd", "kernels")
                 if options.get_safe(part)]
        toolchain.cache_variables["MICA_LINK"] = ";".join(parts + ["tools", "jinja"])
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        self._expect("no-such.gguf", "refused: no-such.gguf: no such file")
        model = os.path.join(self.recipe_folder, "..", "..", "..", "examples", "models", "fairy.gguf")
        if os.path.exists(model):  # refused by the consumer's own policy
            self._expect(model, "refused: activations: ")
            if self.dependencies["mica"].options.get_safe("kernels"):
                self._expect(model, "Once upon a time there", "compiled")

    def _expect(self, model, words, name="consumer"):
        said = io.StringIO()
        program = os.path.join(self.cpp.build.bindir, name)
        self.run(f'"{program}" "{model}"', stdout=said, env="conanrun")
        if words not in said.getvalue():
            raise ConanException(f"{name} was to say '{words}' and said\n{said.getvalue()}")
        self.output.info(said.getvalue().strip())
