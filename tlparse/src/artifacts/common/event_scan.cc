#include "artifacts/common/event_scan.h"

#include <cstdint>

#include "base/ascii.h"

namespace tlparse {

namespace {

constexpr int kMaxDepth = 16;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  std::optional<ScannedEvent> Event() {
    if (!Object([this](std::string_view key) { return Member(key); })) return std::nullopt;
    Space();
    if (at_ != end_ || (seen_ & 7) != 7) return std::nullopt;
    return event_;
  }

 private:
  static constexpr unsigned kName = 1, kTime = 2, kPhase = 4, kThread = 8;

  void Space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool Take(char c) {
    Space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // A string without escapes.
  bool Plain(std::string_view& text) {
    if (!Take('"')) return false;
    const char* begin = at_;
    while (at_ < end_ && *at_ != '"') {
      if (*at_ == '\\' || static_cast<unsigned char>(*at_) < 0x20) return false;
      ++at_;
    }
    if (at_ == end_) return false;
    text = {begin, static_cast<std::size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  bool SkipString() {
    for (++at_; at_ < end_ && *at_ != '"'; ++at_) {
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      // Escapes are for the parser to judge.
      if (*at_ == '\\') return false;
    }
    if (at_ == end_) return false;
    ++at_;
    return true;
  }

  // Digits, at least one; appended to `value` as long as it has room.
  bool Digits(std::uint64_t& value, int& count) {
    const char* begin = at_;
    for (; at_ < end_ && IsDigit(*at_); ++at_) {
      if (++count > 18) return false;
      value = value * 10 + static_cast<std::uint64_t>(*at_ - '0');
    }
    return at_ != begin;
  }

  // A number of up to 18 digits without exponent: those fit a 64-bit integer, and one division
  // gives the double.
  bool Number(double& result) {
    Space();
    const bool is_negative = at_ < end_ && *at_ == '-';
    if (is_negative) ++at_;
    if (at_ + 1 < end_ && *at_ == '0' && IsDigit(at_[1])) return false;
    std::uint64_t value = 0;
    int count = 0;
    if (!Digits(value, count)) return false;
    double scale = 1;
    if (at_ < end_ && *at_ == '.') {
      ++at_;
      const int whole = count;
      if (!Digits(value, count)) return false;
      for (int digit = whole; digit < count; ++digit) scale *= 10;
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) return false;
    result = static_cast<double>(value) / scale;
    if (is_negative) result = -result;
    return true;
  }

  bool Literal(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::string_view(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }

  bool Skip(int depth) {
    Space();
    if (at_ == end_ || depth > kMaxDepth) return false;
    switch (*at_) {
      case '"':
        return SkipString();
      case '{':
        return Object([this, depth](std::string_view) { return Skip(depth + 1); });
      case '[':
        return Array(depth);
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      default: {
        double ignored = 0;
        return Number(ignored);
      }
    }
  }

  bool Array(int depth) {
    ++at_;
    if (Take(']')) return true;
    while (true) {
      if (!Skip(depth + 1)) return false;
      if (Take(']')) return true;
      if (!Take(',')) return false;
    }
  }

  template <typename OnMember>
  bool Object(OnMember on_member) {
    if (!Take('{')) return false;
    if (Take('}')) return true;
    while (true) {
      std::string_view key;
      if (!Plain(key) || !Take(':') || !on_member(key)) return false;
      if (Take('}')) return true;
      if (!Take(',')) return false;
    }
  }

  bool Once(unsigned member) {
    if ((seen_ & member) != 0) return false;
    seen_ |= member;
    return true;
  }

  bool Thread() {
    Space();
    if (at_ == end_ || !IsDigit(*at_)) return Skip(1);
    double value = 0;
    if (!Once(kThread) || !Number(value) || value >= 9e15) return false;
    event_.thread = static_cast<std::int64_t>(value);
    return true;
  }

  bool Member(std::string_view key) {
    if (key == "name") return Once(kName) && Plain(event_.name);
    if (key == "ts") return Once(kTime) && Number(event_.ts_us);
    if (key == "ph") {
      std::string_view phase;
      if (!Once(kPhase) || !Plain(phase) || phase.size() != 1) return false;
      event_.phase = phase.front();
      return true;
    }
    if (key == "tid") return Thread();
    if (key != "args") return Skip(1);
    if (has_args_) return false;
    has_args_ = true;
    return Object([this](std::string_view name) {
      if (name != "compile_id") return Skip(2);
      Space();
      return at_ < end_ && *at_ == '"' ? Plain(event_.compile_label) : Skip(2);
    });
  }

  const char* at_;
  const char* end_;
  unsigned seen_ = 0;
  bool has_args_ = false;
  ScannedEvent event_;
};

}  // namespace

std::optional<ScannedEvent> ScanEvent(std::string_view text) { return Scanner(text).Event(); }

}  // namespace tlparse
