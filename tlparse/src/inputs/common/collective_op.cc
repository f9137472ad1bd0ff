#include "inputs/common/collective_op.h"

#include <algorithm>

namespace tlparse {

std::string PlainCollective(std::string_view name) {
  name = name.substr(0, name.find(' '));
  if (const std::size_t colon = name.rfind(':'); colon != name.npos) name.remove_prefix(colon + 1);
  for (const std::string_view space : {"c10d_functional.", "c10d."}) {
    if (const std::size_t at = name.find(space); at != name.npos) {
      name.remove_prefix(at + space.size());
      name = name.substr(0, name.find('.'));
    }
  }
  std::string plain(name);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view ending :
         {"base", "intotensor", "tensor", "single", "coalesced", "async", "out", "oop"}) {
      if (plain.size() <= ending.size() || !plain.ends_with(ending)) continue;
      plain.resize(plain.size() - ending.size());
      again = true;
    }
  }
  return plain;
}

std::string_view BackendOf(std::string_view profiling_name) {
  const std::size_t colon = profiling_name.find(':');
  return colon == profiling_name.npos ? std::string_view() : profiling_name.substr(0, colon);
}

bool MayBeRecordedAs(std::string_view code_op, std::string_view profiling_name) {
  const std::string wanted = PlainCollective(code_op);
  const std::string recorded = PlainCollective(profiling_name);
  if (wanted == recorded) return true;
  return wanted == "reducescatter" && recorded == "allreduce" &&
         BackendOf(profiling_name) == "gloo";
}

}  // namespace tlparse
