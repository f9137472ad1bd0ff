// The machine that a shared object was built for and the libraries it needs, from its ELF headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace libtrace {

struct ElfNeeds {
  std::string machine{};  // x86_64, aarch64, or `machine <number>`
  std::vector<std::string> libraries{};
};

// Of a 64-bit little-endian ELF file; empty if it is none, or if what its headers point to is not
// in it.
std::optional<ElfNeeds> ReadElfNeeds(std::string_view file);

}  // namespace libtrace
