// Files of the repository that are part of the program: JSON Schemas of answers, playbooks, documents.
#pragma once

#include <span>
#include <string_view>

namespace tlparse {

struct EmbeddedFile {
  std::string_view
      name;  // "json/answers/findings.schema.json", "playbooks/recompiles.md", "questions.md"
  std::string_view text;
};
// By name. Generated (tlparse/cmake/Generate.cmake).
std::span<const EmbeddedFile> EmbeddedFiles();

// Empty: there is no file of that name.
inline std::string_view EmbeddedText(std::string_view name) {
  for (const EmbeddedFile& file : EmbeddedFiles())
    if (file.name == name) return file.text;
  return {};
}

}  // namespace tlparse
