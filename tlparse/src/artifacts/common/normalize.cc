#include "artifacts/common/normalize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tlparse {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLowerHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }
bool IsBase32(char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); }

// Two neighbouring bytes worth a look. kAnyDigit as second stands for 0 … 9.
struct Pair {
  char first;
  char second;
};
constexpr char kAnyDigit = '\1';

template <std::size_t N>
bool IsHit(const std::array<Pair, N>& pairs, char first, char second) {
  for (const Pair& pair : pairs) {
    if (first == pair.first && (pair.second == kAnyDigit ? IsDigit(second) : second == pair.second)) return true;
  }
  return false;
}

// Calls hit(position) for each place where one of `pairs` stands, in order; hit returns where to go on (at least position + 1).
template <std::size_t N, typename Hit>
void ScanPairs(std::string_view text, const std::array<Pair, N>& pairs, Hit&& hit) {
  std::size_t at = 0;
  std::size_t resume = 0;
#if defined(__SSE2__)
  __m128i firsts[N];
  __m128i seconds[N];
  for (std::size_t index = 0; index < N; ++index) {
    firsts[index] = _mm_set1_epi8(pairs[index].first);
    seconds[index] = _mm_set1_epi8(pairs[index].second);
  }
  const __m128i zero = _mm_set1_epi8('0');
  const __m128i nine = _mm_set1_epi8(9);
  for (; at + 17 <= text.size(); at += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at + 1));
    __m128i found = _mm_setzero_si128();
    for (std::size_t index = 0; index < N; ++index) {
      __m128i second;
      if (pairs[index].second == kAnyDigit) {
        const __m128i value = _mm_sub_epi8(b, zero);
        second = _mm_cmpeq_epi8(_mm_min_epu8(value, nine), value);
      } else {
        second = _mm_cmpeq_epi8(b, seconds[index]);
      }
      found = _mm_or_si128(found, _mm_and_si128(_mm_cmpeq_epi8(a, firsts[index]), second));
    }
    auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(found));
    for (; mask != 0; mask &= mask - 1) {
      const std::size_t position = at + static_cast<std::size_t>(std::countr_zero(mask));
      if (position >= resume) resume = hit(position);
    }
  }
#endif
  for (; at + 1 < text.size(); ++at) {
    if (at >= resume && IsHit(pairs, text[at], text[at + 1])) resume = hit(at);
  }
}

// The text with some stretches replaced; copies nothing before the first replacement.
class Rewriter {
 public:
  Rewriter(std::string_view text, std::string& buffer) : text_(text), buffer_(buffer) { buffer_.clear(); }

  // Stretches come in ascending order and do not overlap (one that reaches back before the last is cut).
  void Replace(std::size_t begin, std::size_t end, std::string_view with) {
    begin = std::max(begin, copied_);
    if (end < begin) return;
    if (!is_changed_) buffer_.reserve(text_.size() + 64);
    is_changed_ = true;
    buffer_.append(text_, copied_, begin - copied_);
    buffer_.append(with);
    copied_ = end;
  }
  std::size_t copied() const { return copied_; }
  std::string_view Finish() {
    if (!is_changed_) return text_;
    buffer_.append(text_, copied_);
    return buffer_;
  }

 private:
  std::string_view text_;
  std::string& buffer_;
  std::size_t copied_ = 0;
  bool is_changed_ = false;
};

std::size_t DigitsEnd(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}
bool EndsWithAt(std::string_view text, std::size_t end, std::string_view suffix) {
  return end >= suffix.size() && text.substr(end - suffix.size(), suffix.size()) == suffix;
}
bool StartsWithAt(std::string_view text, std::size_t at, std::string_view prefix) {
  return at <= text.size() && text.substr(at, prefix.size()) == prefix;
}

// Indices of devices in the order in which a text names them. More than 16 different ones keep their own number.
class DeviceOrdinals {
 public:
  void Rewrite(std::string_view text, std::size_t begin, std::size_t end, Rewriter& rewriter) {
    if (end == begin || end - begin > 5) return;
    int index = 0;
    for (std::size_t at = begin; at < end; ++at) index = index * 10 + (text[at] - '0');
    const auto* known = std::find(seen_.begin(), seen_.begin() + count_, index);
    if (known == seen_.begin() + count_) {
      if (count_ == static_cast<int>(seen_.size())) return;
      seen_[static_cast<std::size_t>(count_++)] = index;
    }
    const auto ordinal = static_cast<int>(known - seen_.begin());
    if (ordinal == index) return;
    const char digits[2] = {static_cast<char>('0' + ordinal / 10), static_cast<char>('0' + ordinal % 10)};
    rewriter.Replace(begin, end, ordinal < 10 ? std::string_view(digits + 1, 1) : std::string_view(digits, 2));
  }

 private:
  std::array<int, 16> seen_{};
  int count_ = 0;
};

// The rewriters below look at one hit of ScanPairs each and return where to go on.

constexpr Pair kAddress{'0', 'x'};
std::size_t RewriteAddress(std::string_view text, std::size_t at, Rewriter& rewriter) {
  std::size_t end = at + 2;
  while (end < text.size() && end - at <= 18 && IsLowerHex(text[end])) ++end;
  const std::size_t digits = end - at - 2;
  // Nine digits and more are beyond the constants that code contains; repr() writes any length after " at ".
  if (digits > 16 || digits == 0 || (digits < 9 && !EndsWithAt(text, at, " at "))) return at + 1;
  rewriter.Replace(at + 2, end, "<addr>");
  return end;
}

constexpr Pair kCuda{'a', ':'};   // cuda:3, mtia:3
constexpr Pair kXpu{'u', ':'};    // xpu:3, hpu:3, npu:3
constexpr Pair kIndex{'x', '='};  // device(type='cuda', index=3), DeviceProperties(type='cuda', index=3, …)
std::size_t RewriteDevice(std::string_view text, std::size_t at, DeviceOrdinals& devices, Rewriter& rewriter) {
  const std::size_t begin = at + 2;
  const std::size_t end = DigitsEnd(text, begin);
  if (end == begin) return at + 1;
  const bool is_device = text[at] == 'a'   ? EndsWithAt(text, begin, "cuda:") || EndsWithAt(text, begin, "mtia:")
                         : text[at] == 'u' ? at > 0 && (text[at - 1] == 'p') : EndsWithAt(text, begin, "', index=");
  if (!is_device) return at + 1;
  devices.Rewrite(text, begin, end, rewriter);
  return end;
}

constexpr Pair kCacheFile{'/', 'c'};
// …/ab/cab<49 more base32 characters>: a file of PyTorch's code cache; the stem is made from its text.
std::size_t RewriteCachePath(std::string_view text, std::size_t at, Rewriter& rewriter) {
  if (at < 3 || at + 40 > text.size() || text[at - 3] != '/' || text[at - 2] != text[at + 2] || text[at - 1] != text[at + 3]) {
    return at + 1;
  }
  std::size_t end = at + 1;
  while (end < text.size() && IsBase32(text[end])) ++end;
  if (end - at < 40) return at + 1;
  std::size_t begin = at - 3;
  // A path ends at what separates words in code; long ones are cut, so that hostile text cannot make this quadratic.
  const std::size_t limit = std::max(rewriter.copied(), at > 4096 ? at - 4096 : std::size_t{0});
  while (begin > limit && std::string_view(" \t\n\"'(<,=").find(text[begin - 1]) == std::string_view::npos) --begin;
  rewriter.Replace(begin, end, "<cache>");
  return end;
}

constexpr Pair kNumberedName{'_', kAnyDigit};
// optimizer_140329873123456_c5, ___check_metadata_140329873123456_c10
std::size_t RewriteNumberedName(std::string_view text, std::size_t at, Rewriter& rewriter) {
  constexpr std::size_t kFewestDigits = 11;
  if (at + kFewestDigits >= text.size() || !IsDigit(text[at + kFewestDigits])) return at + 1;
  const std::size_t end = DigitsEnd(text, at + 1);
  if (end - at - 1 < kFewestDigits || end - at - 1 > 20) return end;
  rewriter.Replace(at + 1, end, "<addr>");
  if (StartsWithAt(text, end, "_c") && DigitsEnd(text, end + 2) > end + 2) {
    rewriter.Replace(end, DigitsEnd(text, end + 2), "_c");
    return DigitsEnd(text, end + 2);
  }
  return end;
}

constexpr Pair kEvalWithKey{'>', '.'};
std::size_t RewriteEvalWithKey(std::string_view text, std::size_t at, Rewriter& rewriter) {
  const std::size_t end = DigitsEnd(text, at + 2);
  if (end == at + 2 || !EndsWithAt(text, at, "<eval_with_key")) return at + 1;
  rewriter.Replace(at + 2, end, "N");
  return end;
}

// Without the "# graph id: N" that pre-grad graphs end with, and white space at the end.
std::string_view WithoutGraphId(std::string_view text) {
  constexpr std::string_view kBlank = " \n\t\r";
  std::size_t end = text.find_last_not_of(kBlank) + 1;
  std::size_t digits = end;
  while (digits > 0 && IsDigit(text[digits - 1])) --digits;
  if (digits < end && EndsWithAt(text, digits, "# graph id: ")) {
    end = text.substr(0, digits - std::string_view("# graph id: ").size()).find_last_not_of(kBlank) + 1;
  }
  return text.substr(0, end);
}

constexpr Pair kProvenance{'[', 'P'};
// "    # [Provenance debug handles] kernel:3\n", which is there only if provenance is tracked.
std::size_t RewriteProvenance(std::string_view text, std::size_t at, Rewriter& rewriter) {
  if (!StartsWithAt(text, at, "[Provenance debug handles]")) return at + 1;
  std::size_t begin = at;
  while (begin > rewriter.copied() && text[begin - 1] != '\n') --begin;
  const std::size_t newline = text.find('\n', at);
  const std::size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
  rewriter.Replace(begin, end, "");
  return end;
}

constexpr Pair kStream{'a', 'm'};         // stream3, get_raw_stream(3)
constexpr Pair kDeviceGuard{'d', '('};    // torch.cuda._DeviceGuard(3)
constexpr Pair kSetDevice{'e', '('};      // torch.cuda.set_device(3)
std::size_t RewriteStream(std::string_view text, std::size_t at, DeviceOrdinals& devices, Rewriter& rewriter) {
  std::size_t begin = at + 2;
  if (text[at] == 'a') {
    if (!EndsWithAt(text, begin, "stream")) return at + 1;
    if (begin < text.size() && text[begin] == '(') ++begin;
  } else if (!EndsWithAt(text, begin, "_DeviceGuard(") && !EndsWithAt(text, begin, "cuda.set_device(")) {
    return at + 1;
  }
  const std::size_t end = DigitsEnd(text, begin);
  devices.Rewrite(text, begin, end, rewriter);
  return std::max(end, at + 1);
}

constexpr Pair kObjectId{' ', kAnyDigit};
// "___check_type_id(L['x'], 129836096)" and the padding behind it.
std::size_t RewriteObjectId(std::string_view text, std::size_t at, Rewriter& rewriter) {
  constexpr std::size_t kFewestDigits = 7;
  if (at + kFewestDigits >= text.size() || !IsDigit(text[at + kFewestDigits])) return at + 1;
  const std::size_t end = DigitsEnd(text, at + 1);
  if (end - at - 1 < kFewestDigits || end == text.size() || text[end] != ')' || at == 0 || text[at - 1] != ',') return end;
  // The guard's name stands before it on the line; looking back has a limit, so that hostile text cannot make this quadratic.
  const std::size_t window = at > 2048 ? at - 2048 : 0;
  std::string_view before = text.substr(window, at - window);
  if (const std::size_t newline = before.rfind('\n'); newline != std::string_view::npos) before.remove_prefix(newline + 1);
  if (before.find("___check_") == std::string_view::npos) return end;
  std::size_t blanks = end + 1;
  while (blanks < text.size() && text[blanks] == ' ') ++blanks;
  rewriter.Replace(at + 1, blanks, "<addr>)");
  return blanks;
}

// "torch._dynamo.config.repro_ignore = {'b', 'a'}": sets are printed in an order that differs by process. Other lines stay.
std::string WithSortedSet(std::string_view line) {
  const std::size_t open = line.find(" = {'");
  if (open == std::string_view::npos || !line.ends_with("'}") || line.find("': ") != std::string_view::npos) {
    return std::string(line);
  }
  std::vector<std::string_view> members;
  std::string_view rest = line.substr(open + 5, line.size() - open - 7);
  for (std::size_t comma; (comma = rest.find("', '")) != std::string_view::npos; rest.remove_prefix(comma + 4)) {
    members.push_back(rest.substr(0, comma));
  }
  members.push_back(rest);
  std::sort(members.begin(), members.end());
  std::string sorted(line.substr(0, open + 4));
  for (const std::string_view member : members) {
    if (member.data() != members.front().data()) sorted.append(", ");
    sorted.append("'").append(member).append("'");
  }
  return sorted + "}";
}

// The lines "torch.….config.… = …" that begin at `begin`, in an order of their own: PyTorch's differs by process. `end` becomes
// where they end (the LF of the last one).
std::string SortedSettings(std::string_view text, std::size_t begin, std::size_t& end) {
  std::vector<std::string> lines;
  while (StartsWithAt(text, begin, "torch.")) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(WithSortedSet(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted.append(sorted.empty() ? "" : "\n").append(line);
  return sorted;
}

constexpr Pair kLineO{'\n', 'o'};        // os.environ[…]
constexpr Pair kLineT{'\n', 't'};        // torch._dynamo.config.… = …
constexpr Pair kFakeRank{'k', '\''};     // 'rank': 0
std::size_t RewriteRunnable(std::string_view text, std::size_t at, Rewriter& rewriter) {
  if (text[at] == 'k') {
    const std::size_t end = DigitsEnd(text, at + 4);
    if (!EndsWithAt(text, at + 2, "'rank'") || !StartsWithAt(text, at + 2, ": ") || end == at + 4) return at + 1;
    rewriter.Replace(at + 4, end, "0");
    return end;
  }
  if (StartsWithAt(text, at + 1, "os.environ[")) {
    const std::size_t newline = std::min(text.find('\n', at + 1), text.size());
    rewriter.Replace(at, newline, "");
    return newline;
  }
  if (StartsWithAt(text, at + 1, "torch.")) {
    std::size_t end = at + 1;
    std::string buffer;
    const std::string settings = SortedSettings(text, at + 1, end);
    const std::string_view sorted = NormalizeText(settings, buffer);
    if (sorted != text.substr(at + 1, end - at - 1)) rewriter.Replace(at + 1, end, sorted);
    return end;
  }
  return at + 1;
}

}  // namespace

std::string_view NormalizeGraph(std::string_view text, std::string& buffer) {
  text = WithoutGraphId(text);
  Rewriter rewriter(text, buffer);
  DeviceOrdinals devices;
  constexpr std::array kPairs = {kAddress, kCuda, kXpu, kIndex, kEvalWithKey, kNumberedName};
  ScanPairs(text, kPairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0': return RewriteAddress(text, at, rewriter);
      case '>': return RewriteEvalWithKey(text, at, rewriter);
      case '_': return RewriteNumberedName(text, at, rewriter);
      default: return RewriteDevice(text, at, devices, rewriter);
    }
  });
  return rewriter.Finish();
}

std::string_view NormalizeCode(std::string_view text, std::string& buffer) {
  Rewriter rewriter(text, buffer);
  DeviceOrdinals devices;
  constexpr std::string_view kAotId = "# AOT ID: ['";
  if (const std::size_t at = text.substr(0, 256).find(kAotId); at != std::string_view::npos) {
    rewriter.Replace(at + kAotId.size(), DigitsEnd(text, at + kAotId.size()), "");
  }
  constexpr std::array kPairs = {kAddress, kCacheFile, kProvenance, kCuda, kXpu, kIndex, kStream, kDeviceGuard, kSetDevice};
  ScanPairs(text, kPairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0': return RewriteAddress(text, at, rewriter);
      case '/': return RewriteCachePath(text, at, rewriter);
      case '[': return RewriteProvenance(text, at, rewriter);
      case 'u':
      case 'x': return RewriteDevice(text, at, devices, rewriter);
      case 'a':
        return text[at + 1] == ':' ? RewriteDevice(text, at, devices, rewriter) : RewriteStream(text, at, devices, rewriter);
      default: return RewriteStream(text, at, devices, rewriter);
    }
  });
  return rewriter.Finish();
}

std::string_view NormalizeGuards(std::string_view text, std::string& buffer) {
  constexpr std::string_view kLatency = "Guard latency = ";
  const std::size_t tail = text.size() > 80 ? text.size() - 80 : 0;
  if (const std::size_t at = text.substr(tail).rfind(kLatency); at != std::string_view::npos) {
    text = text.substr(0, tail + at + kLatency.size());
  }
  Rewriter rewriter(text, buffer);
  DeviceOrdinals devices;
  constexpr std::array kPairs = {kAddress, kCuda, kXpu, kIndex, kNumberedName, kObjectId};
  ScanPairs(text, kPairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0': return RewriteAddress(text, at, rewriter);
      case '_': return RewriteNumberedName(text, at, rewriter);
      case ' ': return RewriteObjectId(text, at, rewriter);
      default: return RewriteDevice(text, at, devices, rewriter);
    }
  });
  return rewriter.Finish();
}

std::string_view NormalizeRunnable(std::string_view text, std::string& buffer) {
  Rewriter rewriter(text, buffer);
  DeviceOrdinals devices;
  constexpr std::array kPairs = {kAddress, kCacheFile, kCuda, kXpu, kIndex, kLineO, kLineT, kFakeRank};
  ScanPairs(text, kPairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0': return RewriteAddress(text, at, rewriter);
      case '/': return RewriteCachePath(text, at, rewriter);
      case '\n':
      case 'k': return RewriteRunnable(text, at, rewriter);
      default: return RewriteDevice(text, at, devices, rewriter);
    }
  });
  return rewriter.Finish();
}

std::string_view NormalizeText(std::string_view text, std::string& buffer) {
  Rewriter rewriter(text, buffer);
  DeviceOrdinals devices;
  constexpr std::array kPairs = {kAddress, kCacheFile, kCuda, kXpu, kIndex};
  ScanPairs(text, kPairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0': return RewriteAddress(text, at, rewriter);
      case '/': return RewriteCachePath(text, at, rewriter);
      default: return RewriteDevice(text, at, devices, rewriter);
    }
  });
  return rewriter.Finish();
}

}  // namespace tlparse
