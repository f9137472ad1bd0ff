// The grammar of JSON, for what simdjson cannot read (texts that are cut or damaged, NaN, duplicate members) and for what
// needs the text of the values.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/json_string.h"
#include "base/plain_bytes.h"

namespace tlparse {

// Walks through a text that is one JSON value, without recursion and in linear time. `Handler` derives from it and has these
// functions. Each is called at the token that it handles and moves at_ behind it; false ends the walk, after Problem or Cut.
//
//   bool Open();     '{' or '[': depth() does not count the container yet
//   bool Close();    '}' or ']': depth() does not count it any more
//   bool Name();     the string that is a member's name
//   bool Scalar();   a string, number, true, false or null, or what else stands where a value is expected
//   void Comma();
//   void Colon();
template <typename Handler>
class JsonWalker {
 protected:
  explicit JsonWalker(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  // False: at_ is the place of the problem.
  bool Walk() {
    do {
      SkipSpace();
      if (at_ == end_) return Cut("the text ends where a value is expected");
      const char first = *at_;
      const bool is_container = first == '{' || first == '[';
      if (!(is_container ? handler().Open() : handler().Scalar())) return false;
      if (is_container) open_.push_back(first);
      if (!ToNextValue(is_container)) return false;
    } while (!open_.empty());
    SkipSpace();
    return at_ == end_ || Problem("something follows the value");
  }

  // Of open containers.
  std::size_t depth() const { return open_.size(); }
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  std::string_view TextSince(const char* begin) const {
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }

  bool Problem(const char* problem) {
    problem_ = problem;
    return false;
  }
  // The text is valid as far as it goes.
  bool Cut(const char* problem) {
    is_cut_ = true;
    return Problem(problem);
  }

  // A scalar of strict JSON.
  bool StrictScalar() {
    switch (*at_) {
      case '"':
        return String();
      case 't':
        return Word("true");
      case 'f':
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return *at_ == '-' || IsDigit(*at_) ? Number() : Problem("a value expected");
    }
  }

  // NaN, Infinity and -Infinity, which Python writes.
  bool IsAtPythonNumber() const {
    return *at_ == 'N' || *at_ == 'I' || (*at_ == '-' && at_ + 1 != end_ && at_[1] == 'I');
  }
  bool PythonNumber() { return Word(*at_ == 'N' ? "NaN" : *at_ == 'I' ? "Infinity" : "-Infinity"); }

  bool String(bool accepts_controls = false) {
    ++at_;
    while (true) {
      SkipPlain();
      if (at_ == end_) return Cut("the text ends inside a string");
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ == '\\') {
        if (!Escape()) return false;
        continue;
      }
      if (static_cast<unsigned char>(*at_) < 0x20 && !accepts_controls)
        return Problem("a control character in a string");
      ++at_;
    }
  }

  // A string without escapes; false at the first escape.
  bool PlainString() {
    ++at_;
    while (true) {
      SkipPlain();
      if (at_ == end_) return Cut("the text ends inside a string");
      const char c = *at_;
      if (c == '\\' || static_cast<unsigned char>(c) < 0x20) return false;
      ++at_;
      if (c == '"') return true;
    }
  }

  bool Number() {
    if (*at_ == '-') ++at_;
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else if (!Digits()) {
      return false;
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!Digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      return Digits();
    }
    return true;
  }

  bool Word(std::string_view word) {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    if (!rest.starts_with(word))
      return word.starts_with(rest) ? Cut("the text ends inside a value")
                                    : Problem("a value expected");
    at_ += word.size();
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const char* problem_ = nullptr;
  bool is_cut_ = false;

 private:
  Handler& handler() { return static_cast<Handler&>(*this); }

  void SkipSpace() {
    while (at_ != end_ && IsJsonSpace(*at_)) ++at_;
  }

  // Closes the containers that end here and moves to the next value, if there is one.
  bool ToNextValue(bool is_empty) {
    for (; !open_.empty(); is_empty = false) {
      SkipSpace();
      const bool is_object = open_.back() == '{';
      if (at_ == end_)
        return Cut(is_object ? "the text ends inside an object" : "the text ends inside a list");
      if (*at_ == (is_object ? '}' : ']')) {
        open_.pop_back();
        if (!handler().Close()) return false;
        continue;
      }
      if (!is_empty) {
        if (*at_ != ',') return Problem(is_object ? "',' or '}' expected" : "',' or ']' expected");
        handler().Comma();
      }
      return !is_object || NameAndColon();
    }
    return true;
  }

  bool NameAndColon() {
    SkipSpace();
    if (at_ == end_) return Cut("the text ends inside an object");
    if (*at_ != '"') return Problem("a member's name expected");
    if (!handler().Name()) return false;
    SkipSpace();
    if (at_ == end_) return Cut("the text ends inside an object");
    if (*at_ != ':') return Problem("':' expected");
    handler().Colon();
    return true;
  }

  // To the next quote, backslash or control character, or to the last few bytes.
  void SkipPlain() {
    while (end_ - at_ >= static_cast<std::ptrdiff_t>(kBlockBytes)) {
      const unsigned special = JsonSpecialBytes(at_);
      at_ += special == 0 ? static_cast<int>(kBlockBytes) : std::countr_zero(special);
      if (special != 0) return;
    }
  }

  bool Escape() {
    constexpr std::size_t kShortBytes = 2, kLongBytes = 6;  // \n, \u000a
    const auto left = static_cast<std::size_t>(end_ - at_);
    const bool is_long = left > 1 && at_[1] == 'u';
    if (left < (is_long ? kLongBytes : kShortBytes)) return Cut("the text ends inside a string");
    if (is_long ? !HexUnit({at_ + kShortBytes, kLongBytes - kShortBytes})
                : std::string_view("\"\\/bfnrt").find(at_[1]) == std::string_view::npos)
      return Problem("an escape sequence expected");
    at_ += is_long ? kLongBytes : kShortBytes;
    return true;
  }

  bool Digits() {
    if (at_ == end_) return Cut("the text ends inside a number");
    if (!IsDigit(*at_)) return Problem("a digit expected");
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return true;
  }

  std::string open_;  // the opening brackets
};

}  // namespace tlparse
