#include "inputs/memory/json_feed.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json_string.h"
#include "inputs/common/value_stack.h"

namespace tlparse::memory {
namespace {

class JsonFeed {
 public:
  JsonFeed(StreamSource& source, Values& values)
      : source_(source), values_(values), stack_(values) {}

  JsonResult Read(const std::function<bool()>& is_full) {
    do {
      while (!source_.IsAtEnd() && (IsJsonSpace(static_cast<char>(source_.Peek())) ||
                                    source_.Peek() == ',' || source_.Peek() == ':'))
        source_.Next();
      at_ = source_.at();
      if (source_.IsAtEnd()) {
        Problem("the text ends before its last bracket", true);
      } else if (stack_.IsFull() || is_full()) {
        Problem("the text holds more values than are read of one file");
      } else {
        Token(static_cast<char>(source_.Next()));
      }
    } while (!problem_ && !open_.empty());
    if (problem_) stack_.CloseOpen();
    JsonResult result;
    if (stack_.size() > 0) result.root = stack_.bottom();
    result.problem = std::move(problem_);
    return result;
  }

 private:
  using Type = PlainValue::Type;

  void Problem(std::string message, bool is_cut = false) {
    if (!problem_) problem_ = PlainProblem{std::move(message), at_, is_cut};
  }
  void Token(char first) {
    constexpr std::size_t kMostOpen = 64;
    if (first == '{' || first == '[') {
      if (open_.size() == kMostOpen) return Problem("the text is nested too deep");
      stack_.Push(values_.NewContainer(first == '{' ? Type::kDict : Type::kList));
      stack_.Mark();
      open_.push_back(first);
    } else if (first == '}' || first == ']') {
      if (open_.empty() || (open_.back() == '{') != (first == '}'))
        return Problem("a bracket closes what is not open");
      open_.pop_back();
      if (const char* const problem =
              stack_.Fill(*stack_.PopMark(), first == '}' ? Type::kDict : Type::kList, true))
        Problem(problem);
    } else if (first == '"') {
      String();
    } else {
      Word(first);
    }
  }
  void String() {
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    text_.clear();
    while (true) {
      if (source_.IsAtEnd()) return Problem("the text ends inside a string", true);
      const char c = static_cast<char>(source_.Next());
      if (c == '"') break;
      if (text_.size() == kMostBytes) return Problem("a string is longer than 1 MiB");
      text_ += c;
      if (c != '\\') continue;
      if (source_.IsAtEnd()) return Problem("the text ends inside a string", true);
      text_ += static_cast<char>(source_.Next());
    }
    if (text_.find('\\') == std::string::npos) return stack_.Push(values_.NewText(text_));
    const std::optional<std::string> plain = UnescapeJson(text_);
    if (!plain) return Problem("a string has an invalid escape");
    stack_.Push(values_.NewText(*plain));
  }
  void Word(char first) {
    constexpr std::size_t kMostBytes = 64;
    text_.assign(1, first);
    while (!source_.IsAtEnd() && text_.size() < kMostBytes) {
      const char c = static_cast<char>(source_.Peek());
      if (IsJsonSpace(c) || std::string_view(",:{}[]\"").find(c) != std::string_view::npos) break;
      text_ += static_cast<char>(source_.Next());
    }
    std::int64_t integer = 0;
    double real = 0;
    const char* const last = text_.data() + text_.size();
    if (text_ == "null") {
      stack_.Push(values_.NewNull());
    } else if (text_ == "true" || text_ == "false") {
      stack_.Push(values_.NewBool(text_ == "true"));
    } else if (const auto [end, error] = std::from_chars(text_.data(), last, integer);
               end == last) {
      stack_.Push(error == std::errc() ? values_.NewInt(integer) : values_.NewBigInt());
    } else if (std::from_chars(text_.data(), last, real).ptr == last) {
      stack_.Push(values_.NewReal(real));
    } else {
      Problem("something stands where a value is expected");
    }
  }

  StreamSource& source_;
  Values& values_;
  ValueStack<Values> stack_;
  std::vector<char> open_;
  std::string text_;
  std::int64_t at_ = 0;
  std::optional<PlainProblem> problem_;
};

}  // namespace

JsonResult ReadSnapshotJson(StreamSource& source, Values& values,
                            const std::function<bool()>& is_full) {
  return JsonFeed(source, values).Read(is_full);
}

}  // namespace tlparse::memory
