// The playbooks: a page for each kind of finding (docs/playbooks).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/embedded_texts.h"
#include "facts/finding_kind.h"

namespace tlparse {

// The page of a kind, Markdown.
inline std::string_view PlaybookOf(FindingKind kind) {
  return EmbeddedText("playbooks/" + std::string(Name(kind)) + ".md");
}

// Its first sentence: what the kind means.
inline std::string_view MeaningOf(FindingKind kind) {
  std::string_view text = PlaybookOf(kind);
  text.remove_prefix(std::min(text.size(), text.find("\n\n") + 2));
  return text.substr(0, std::min(text.find(". "), text.find(".\n")));
}

}  // namespace tlparse
