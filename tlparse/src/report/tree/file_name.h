// File names made of untrusted text: artifact names, dumped files, log names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>

namespace tlparse {

// Length of the longest name in bytes; all usual file systems accept 255.
inline constexpr std::size_t kMaxFileNameBytes = 200;

// `stem` + `suffix` as one path component that is safe everywhere. `suffix` is trusted ("_12.json")
// and not changed. In `stem`, path separators, control characters, bytes that are not UTF-8 and
// what Windows reserves (\ : * ? " < > |) become '_'; a stem too long is cut and ends in '~' and 8
// hex digits of its MD5. The result is never empty, "." or "..", is not a device name of Windows,
// is valid UTF-8 and has at most kMaxFileNameBytes. Different stems may give the same name: use
// UniqueNames if `suffix` does not make names unique.
std::string SafeFileName(std::string_view stem, std::string_view suffix);

// Makes the names of one directory unique, also on file systems that ignore the case of ASCII.
class UniqueNames {
 public:
  // `stem` + `suffix` through SafeFileName; a name that was given before becomes `stem~2`,
  // `stem~3`, …
  std::string Next(std::string_view stem, std::string_view suffix);

 private:
  std::unordered_set<std::string> used_;
};

// The last component of a path without its last extension: "/tmp/cab.py" → "cab". Empty if there is
// none ("", "/", "..").
std::string_view FileStem(std::string_view path);

// `path` (components joined by '/') for a URL: what is not unreserved becomes %XX.
std::string UrlFromPath(std::string_view path);

}  // namespace tlparse
