#include "artifacts/common/event_scan.h"

#include <cstdint>

#include "base/json_walk.h"

namespace tlparse {

namespace {

class EventScan : JsonWalker<EventScan> {
 public:
  explicit EventScan(std::string_view text) : JsonWalker(text) {}

  std::optional<ScannedEvent> Run() {
    constexpr unsigned kRequired = kName | kTime | kPhase;
    if (!Walk() || (seen_ & kRequired) != kRequired) return std::nullopt;
    return event_;
  }

 private:
  friend class JsonWalker<EventScan>;
  static constexpr unsigned kName = 1, kTime = 2, kPhase = 4, kThread = 8, kArgs = 16;

  bool Open() {
    const bool is_object = *at_ == '{';
    if (depth() == 0 && !is_object) return false;
    if (depth() == 1) {
      is_in_args_ = key_ == "args";
      if (is_in_args_ ? !is_object || !Once(kArgs) : IsScalarMember()) return false;
    }
    ++at_;
    return true;
  }
  bool Close() {
    if (depth() == 1) is_in_args_ = false;
    ++at_;
    return true;
  }
  void Comma() { ++at_; }
  void Colon() { ++at_; }

  bool Name() { return depth() == 1 || IsArgument() ? TakeString(key_) : PlainString(); }

  bool Scalar() {
    if (IsArgument() && key_ == "compile_id" && *at_ == '"')
      return TakeString(event_.compile_label);
    if (depth() != 1) return OtherScalar();
    if (key_ == "name") return Once(kName) && TakeString(event_.name);
    if (key_ == "ts") return Once(kTime) && ShortNumber(event_.ts_us);
    if (key_ == "ph") {
      std::string_view phase;
      if (!Once(kPhase) || !TakeString(phase) || phase.size() != 1) return false;
      event_.phase = phase.front();
      return true;
    }
    if (key_ == "tid" && IsDigit(*at_)) {
      double value = 0;
      if (!Once(kThread) || !ShortNumber(value) || value >= 9e15) return false;
      event_.thread = static_cast<std::int64_t>(value);
      return true;
    }
    return key_ != "args" && OtherScalar();
  }

  bool IsArgument() const { return is_in_args_ && depth() == 2; }
  bool IsScalarMember() const { return key_ == "name" || key_ == "ts" || key_ == "ph"; }

  bool Once(unsigned member) {
    if ((seen_ & member) != 0) return false;
    seen_ |= member;
    return true;
  }

  bool TakeString(std::string_view& text) {
    const char* const begin = at_ + 1;
    if (*at_ != '"' || !PlainString()) return false;
    text = TextSince(begin);
    text.remove_suffix(1);
    return true;
  }

  // Events with escapes have long texts and are parsed in any case: they are left at the first one.
  bool OtherScalar() { return *at_ == '"' ? PlainString() : StrictScalar(); }

  // A number of up to 18 digits without exponent: those fit a 64-bit integer, and one division
  // gives the double.
  bool ShortNumber(double& result) {
    constexpr int kMostIntegerDigits = 18;
    const char* const begin = at_;
    if (!StrictScalar()) return false;
    std::uint64_t value = 0;
    int digits = 0;
    double scale = 1;
    bool is_fraction = false;
    for (const char c : TextSince(*begin == '-' ? begin + 1 : begin)) {
      if (c == '.') {
        is_fraction = true;
        continue;
      }
      if (!IsDigit(c) || ++digits > kMostIntegerDigits) return false;
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
      if (is_fraction) scale *= 10;
    }
    result = static_cast<double>(value) / scale;
    if (*begin == '-') result = -result;
    return true;
  }

  unsigned seen_ = 0;
  bool is_in_args_ = false;
  std::string_view key_;  // of the latest member of the event or of its args
  ScannedEvent event_;
};

}  // namespace

std::optional<ScannedEvent> ScanEvent(std::string_view text) { return EventScan(text).Run(); }

}  // namespace tlparse
