#include "report/tree/json_format.h"

#include <cstddef>
#include <utility>

#include "base/json_walk.h"
#include "base/json_writer.h"
#include "report/output_directory.h"

namespace tlparse {
namespace {

constexpr std::size_t kMaxDepth = 128;  // of serde_json, which other readers of such files use
constexpr std::size_t kMaxIndentedDepth = 32;

struct StringSink {
  std::string& text;
  void Append(std::string_view bytes) { text += bytes; }
};

struct NullSink {
  void Append(std::string_view) {}
};

template <typename Sink>
class Formatter : JsonWalker<Formatter<Sink>> {
 public:
  Formatter(std::string_view json, JsonLayout layout, Sink& out)
      : JsonWalker<Formatter>(json), layout_(layout), out_(out) {}

  bool Run() {
    const bool is_json = this->Walk();
    if (is_json) Flush();
    return is_json;
  }

 private:
  friend class JsonWalker<Formatter>;
  using JsonWalker<Formatter>::at_;
  using JsonWalker<Formatter>::end_;
  using JsonWalker<Formatter>::depth;

  bool Open() {
    const bool is_first = std::exchange(is_just_opened_, true);
    return Begin(is_first) && Keep(++at_ - 1);
  }
  bool Close() {
    if (!std::exchange(is_just_opened_, false)) NewLine();
    return Keep(++at_ - 1);
  }
  bool Scalar() {
    const char* const begin = at_;
    return Begin(std::exchange(is_just_opened_, false)) && this->StrictScalar() && Keep(begin);
  }
  bool Name() {
    const char* const begin = at_;
    return Begin(std::exchange(is_just_opened_, false)) && this->String() && Keep(begin);
  }
  void Comma() {
    Keep(++at_ - 1);
    NewLine();
  }
  void Colon() {
    const char* const begin = at_++;
    const bool has_space = layout_ == JsonLayout::kPretty && at_ != end_ && *at_ == ' ';
    at_ += has_space ? 1 : 0;
    Keep(begin);
    if (layout_ == JsonLayout::kPretty && !has_space) Insert(" ");
  }

  // Before a value or a name; the first one in its container.
  bool Begin(bool is_first) {
    if (!is_first) return true;
    if (depth() == kMaxDepth) return this->Problem("nested too deeply");
    NewLine();
    return true;
  }

  void NewLine() {
    static constexpr std::string_view kIndent =
        "\n                                                                ";
    static_assert(kIndent.size() == 1 + 2 * kMaxIndentedDepth);
    // Whether the inside of a bracket is written on separate lines depends on its level alone, so
    // that the closing bracket agrees with the opening one.
    if (layout_ == JsonLayout::kCompact || depth() > kMaxIndentedDepth) return;
    Insert(kIndent.substr(0, 1 + 2 * depth()));
  }

  // Keeps the text from `begin` to at_. It follows on what was kept before, as a rule: then both are copied at once.
  bool Keep(const char* begin) {
    if (begin != kept_end_) {
      Flush();
      kept_ = begin;
    }
    kept_end_ = at_;
    return true;
  }
  void Insert(std::string_view bytes) {
    Flush();
    out_.Append(bytes);
  }
  void Flush() {
    if (kept_ != nullptr)
      out_.Append(std::string_view(kept_, static_cast<std::size_t>(kept_end_ - kept_)));
    kept_ = kept_end_ = nullptr;
  }

  const char* kept_ = nullptr;
  const char* kept_end_ = nullptr;
  JsonLayout layout_;
  Sink& out_;
  bool is_just_opened_ = false;
};

}  // namespace

bool AppendJson(std::string_view json, JsonLayout layout, FileWriter& out) {
  return Formatter<FileWriter>(json, layout, out).Run();
}

bool AppendJson(std::string_view json, JsonLayout layout, std::string& out) {
  StringSink sink{out};
  return Formatter<StringSink>(json, layout, sink).Run();
}

bool IsJson(std::string_view json) {
  NullSink sink;
  return Formatter<NullSink>(json, JsonLayout::kCompact, sink).Run();
}

std::string JsonString(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

}  // namespace tlparse
