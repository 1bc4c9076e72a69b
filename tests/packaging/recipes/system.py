# SPDX-License-Identifier: Apache-2.0
#
# Stands for a package of Conan's public remote by the one of the system: the same name, components, targets and
# options, and no files. One recipe for all of them:
#
#   conan export system.py --name highway --version 1.2.0

from conan import ConanFile

# name: CMake's file name, then for each component its target, libraries and header folders.
PACKAGES = {
    "highway": ("highway", {"hwy": ("highway::hwy", ["hwy"], [])}),
    "pcre2": ("PCRE2", {"pcre2-8": ("PCRE2::8BIT", ["pcre2-8"], []),
                        "pcre2-16": ("PCRE2::16BIT", ["pcre2-16"], [])}),
    "nlohmann_json": ("nlohmann_json", {"": ("nlohmann_json::nlohmann_json", [], [])}),
    "xxhash": ("xxHash", {"libxxhash": ("xxHash::xxhash", ["xxhash"], [])}),
    "cpp-httplib": ("httplib", {"": ("httplib::httplib", ["cpp-httplib"], [])}),
    "openssl": ("OpenSSL", {"ssl": ("OpenSSL::SSL", ["ssl"], []), "crypto": ("OpenSSL::Crypto", ["crypto"], [])}),
    "eigen": ("Eigen3", {"eigen3": ("Eigen3::Eigen", [], ["/usr/include/eigen3"])}),
    "xsimd": ("xsimd", {"": ("xsimd", [], [])}),
}


class SystemConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_openssl": [True, False]}
    default_options = {"with_openssl": False}

    def configure(self):
        if self.name != "cpp-httplib":
            del self.options.with_openssl

    def package_info(self):
        file_name, components = PACKAGES[self.name]
        self.cpp_info.set_property("cmake_file_name", file_name)
        for name, (target, libraries, folders) in components.items():
            info = self.cpp_info.components[name] if name else self.cpp_info
            info.set_property("cmake_target_name", target)
            info.system_libs = libraries
            info.includedirs = folders
            info.libdirs = []
            info.bindirs = []
        if self.options.get_safe("with_openssl"):
            self.cpp_info.defines = ["CPPHTTPLIB_OPENSSL_SUPPORT"]
