#include "torch/elf_needs.h"

#include <elf.h>

#include <cstring>

namespace libtrace {
namespace {

template <class T>
bool Get(std::string_view file, uint64_t offset, T& value) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return true;
}

std::string MachineName(uint16_t machine) {
  if (machine == EM_X86_64) return "x86_64";
  if (machine == EM_AARCH64) return "aarch64";
  return "machine " + std::to_string(machine);
}

// The segments map an address to a place in the file.
class Segments {
 public:
  Segments(std::string_view file, const Elf64_Ehdr& header) : file_(file), header_(header) {}

  template <class Use>
  void ForEach(const Use& use) const {
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!Get(file_, header_.e_phoff + i * sizeof(segment), segment)) return;
      use(segment);
    }
  }
  std::optional<uint64_t> OffsetOf(uint64_t address) const {
    std::optional<uint64_t> offset;
    ForEach([&](const Elf64_Phdr& segment) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        offset = segment.p_offset + (address - segment.p_vaddr);
    });
    return offset;
  }

 private:
  std::string_view file_;
  const Elf64_Ehdr& header_;
};

}  // namespace

std::optional<ElfNeeds> ReadElfNeeds(std::string_view file) {
  Elf64_Ehdr header;
  if (!Get(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  ElfNeeds needs{MachineName(header.e_machine), {}};
  const Segments segments(file, header);
  Elf64_Phdr dynamic{};
  segments.ForEach([&](const Elf64_Phdr& segment) {
    if (segment.p_type == PT_DYNAMIC) dynamic = segment;
  });
  std::vector<uint64_t> names;
  std::optional<uint64_t> strings;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    if (!Get(file, dynamic.p_offset + at, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = segments.OffsetOf(entry.d_un.d_ptr);
  }
  if (names.empty()) return needs;
  if (!strings || *strings > file.size()) return {};
  const std::string_view table = file.substr(*strings);
  for (const uint64_t name : names) {
    const size_t end = name < table.size() ? table.find('\0', name) : std::string_view::npos;
    if (end == std::string_view::npos) return {};
    needs.libraries.emplace_back(table.substr(name, end - name));
  }
  return needs;
}

}  // namespace libtrace
