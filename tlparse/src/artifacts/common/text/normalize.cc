#include "artifacts/common/text/normalize.h"

#include <algorithm>
#include <array>
#include <vector>

#include "artifacts/common/text/text_rewriter.h"
#include "base/ascii.h"

namespace tlparse {

namespace {

// Indices of devices, but for the processor's, in the order in which a text names them. More than 16 different ones keep
// their own number.
class DeviceOrdinals {
 public:
  void Rewrite(std::string_view text, std::size_t begin, std::size_t end, TextRewriter& rewriter) {
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
    const char digits[2] = {static_cast<char>('0' + ordinal / 10),
                            static_cast<char>('0' + ordinal % 10)};
    rewriter.Replace(begin, end,
                     ordinal < 10 ? std::string_view(digits + 1, 1) : std::string_view(digits, 2));
  }

 private:
  std::array<int, 16> seen_{};
  int count_ = 0;
};

// The rewriters below examine one hit of ScanPairs each and return where to continue.

constexpr BytePair kAddress{'0', 'x'};
std::size_t RewriteAddress(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  std::size_t end = at + 2;
  while (end < text.size() && end - at <= 18 && IsLowerHex(text[end])) ++end;
  const std::size_t digits = end - at - 2;
  // Nine digits and more are beyond the constants that code contains; repr() writes any length
  // after " at ".
  if (digits > 16 || digits == 0 || (digits < 9 && !EndsWithAt(text, at, " at "))) return at + 1;
  rewriter.Replace(at + 2, end, "<addr>");
  return end;
}

constexpr BytePair kCuda{'a', ':'};  // cuda:3, mtia:3
constexpr BytePair kXpu{'u', ':'};   // xpu:3, hpu:3, npu:3
constexpr BytePair kIndex{
    'x', '='};  // device(type='cuda', index=3), DeviceProperties(type='cuda', index=3, …)
std::size_t RewriteDevice(std::string_view text, std::size_t at, DeviceOrdinals& devices,
                          TextRewriter& rewriter) {
  const std::size_t begin = at + 2;
  const std::size_t end = DigitsEnd(text, begin);
  if (end == begin) return at + 1;
  const bool is_device =
      text[at] == 'a' ? EndsWithAt(text, begin, "cuda:") || EndsWithAt(text, begin, "mtia:")
      : text[at] == 'u'
          ? at > 0 && text[at - 1] == 'p' && !EndsWithAt(text, begin, "cpu:")
          : EndsWithAt(text, begin, "', index=") && !EndsWithAt(text, begin, "'cpu', index=");
  if (!is_device) return at + 1;
  devices.Rewrite(text, begin, end, rewriter);
  return end;
}

constexpr BytePair kCacheFile{'/', 'c'};
// …/ab/cab<49 more base32 characters>: a file of PyTorch's code cache; the stem is made from its
// text. AOTInductor's are in a folder with such a name: …/cab<49 more>/ccd<49 more>.
std::size_t RewriteCachePath(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  if (at + 40 > text.size()) return at + 1;
  const bool is_in_own_folder = at >= 3 && text[at - 3] == '/' && text[at - 2] == text[at + 2] &&
                                text[at - 1] == text[at + 3];
  std::size_t end = at + 1;
  while (end < text.size() && IsBase32(text[end])) ++end;
  constexpr std::size_t kCachePathHashLength = 52;
  if (end - at < (is_in_own_folder ? 40 : kCachePathHashLength + 1)) return at + 1;
  std::size_t begin = is_in_own_folder ? at - 3 : at;
  // A path ends at what separates words in code; long ones are cut, so that hostile text cannot
  // make this quadratic.
  const std::size_t limit = std::max(rewriter.copied(), at > 4096 ? at - 4096 : std::size_t{0});
  while (begin > limit &&
         std::string_view(" \t\n\"'(<,=").find(text[begin - 1]) == std::string_view::npos)
    --begin;
  rewriter.Replace(begin, end, "<cache>");
  return end;
}

constexpr BytePair kNumberedName{'_', kAnyDigit};
// optimizer_140329873123456_c5, ___check_metadata_140329873123456_c10
std::size_t RewriteNumberedName(std::string_view text, std::size_t at, TextRewriter& rewriter) {
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

constexpr BytePair kEvalWithKey{'>', '.'};
std::size_t RewriteEvalWithKey(std::string_view text, std::size_t at, TextRewriter& rewriter) {
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
    end =
        text.substr(0, digits - std::string_view("# graph id: ").size()).find_last_not_of(kBlank) +
        1;
  }
  return text.substr(0, end);
}

// Without the benchmark at the end: it makes inputs of the sizes that the compile saw, also where
// the code is for any size.
std::string_view WithoutBenchmark(std::string_view text) {
  for (const std::string_view begin : {"\ndef benchmark_compiled_module(", "\ndef get_args():"})
    text = text.substr(0, text.rfind(begin));
  return text;
}

constexpr BytePair kProvenance{'[', 'P'};
// "    # [Provenance debug handles] kernel:3\n", which is there only if provenance is tracked.
std::size_t RewriteProvenance(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  if (!StartsWithAt(text, at, "[Provenance debug handles]")) return at + 1;
  std::size_t begin = at;
  while (begin > rewriter.copied() && text[begin - 1] != '\n') --begin;
  const std::size_t newline = text.find('\n', at);
  const std::size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
  rewriter.Replace(begin, end, "");
  return end;
}

constexpr BytePair kStream{'a', 'm'};       // stream3, get_raw_stream(3)
constexpr BytePair kDeviceGuard{'d', '('};  // torch.cuda._DeviceGuard(3)
constexpr BytePair kSetDevice{'e', '('};    // torch.cuda.set_device(3)
std::size_t RewriteStream(std::string_view text, std::size_t at, DeviceOrdinals& devices,
                          TextRewriter& rewriter) {
  std::size_t begin = at + 2;
  if (text[at] == 'a') {
    if (!EndsWithAt(text, begin, "stream")) return at + 1;
    if (begin < text.size() && text[begin] == '(') ++begin;
  } else if (!EndsWithAt(text, begin, "_DeviceGuard(") &&
             !EndsWithAt(text, begin, "cuda.set_device(")) {
    return at + 1;
  }
  const std::size_t end = DigitsEnd(text, begin);
  devices.Rewrite(text, begin, end, rewriter);
  return std::max(end, at + 1);
}

constexpr BytePair kObjectId{' ', kAnyDigit};
// "___check_type_id(L['x'], 129836096)" and the padding behind it.
std::size_t RewriteObjectId(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  constexpr std::size_t kFewestDigits = 7;
  if (at + kFewestDigits >= text.size() || !IsDigit(text[at + kFewestDigits])) return at + 1;
  const std::size_t end = DigitsEnd(text, at + 1);
  if (end - at - 1 < kFewestDigits || end == text.size() || text[end] != ')' || at == 0 ||
      text[at - 1] != ',')
    return end;
  // The guard's name is before it on the line; looking back has a limit, so that hostile text
  // cannot make this quadratic.
  const std::size_t window = at > 2048 ? at - 2048 : 0;
  std::string_view before = text.substr(window, at - window);
  if (const std::size_t newline = before.rfind('\n'); newline != std::string_view::npos)
    before.remove_prefix(newline + 1);
  if (before.find("___check_") == std::string_view::npos) return end;
  std::size_t blanks = end + 1;
  while (blanks < text.size() && text[blanks] == ' ') ++blanks;
  rewriter.Replace(at + 1, blanks, "<addr>)");
  return blanks;
}

// "torch._dynamo.config.repro_ignore = {'b', 'a'}": sets are printed in an order that differs by
// process. Other lines stay.
std::string WithSortedSet(std::string_view line) {
  const std::size_t open = line.find(" = {'");
  if (open == std::string_view::npos || !line.ends_with("'}") ||
      line.find("': ") != std::string_view::npos) {
    return std::string(line);
  }
  std::vector<std::string_view> members;
  std::string_view rest = line.substr(open + 5, line.size() - open - 7);
  for (std::size_t comma; (comma = rest.find("', '")) != std::string_view::npos;
       rest.remove_prefix(comma + 4)) {
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

// The lines "torch.….config.… = …" that begin at `begin`, sorted: PyTorch's order differs by
// process. `end` becomes where they end (the LF of the last one).
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

constexpr BytePair kLineO{'\n', 'o'};     // os.environ[…]
constexpr BytePair kLineT{'\n', 't'};     // torch._dynamo.config.… = …
constexpr BytePair kFakeRank{'k', '\''};  // 'rank': 0
std::size_t RewriteRunnable(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  if (text[at] == 'k') {
    const std::size_t end = DigitsEnd(text, at + 4);
    if (!EndsWithAt(text, at + 2, "'rank'") || !StartsWithAt(text, at + 2, ": ") || end == at + 4)
      return at + 1;
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

constexpr BytePair kConstant{')', ' '};
// "_frozen_param1 = None  # device(type='cpu') torch.float32 (512,) (1,) 7f169ec22990": the constant's id()
// (GraphLowering.allocate_non_dup_const_name, torch/_inductor/graph.py).
std::size_t RewriteConstant(std::string_view text, std::size_t at, TextRewriter& rewriter) {
  constexpr std::size_t kFewestDigits = 8, kLongestLine = 1024;
  std::size_t end = at + 2;
  while (end < text.size() && end - at <= 18 && IsLowerHex(text[end])) ++end;
  if (end - at - 2 < kFewestDigits || (end < text.size() && text[end] != '\n')) return at + 1;
  const std::size_t window = at > kLongestLine ? at - kLongestLine : 0;
  const std::size_t newline = text.substr(window, at - window).rfind('\n');
  const std::size_t line = newline == std::string_view::npos ? window : window + newline;
  if (text.substr(line, at - line).find(" = None  # device(") == std::string_view::npos)
    return at + 1;
  rewriter.Replace(at + 2, end, "<addr>");
  return end;
}

// Rewrites the text at each of `pairs`: addresses and paths of caches here, the others by
// other(position, devices), which returns where to continue.
template <std::size_t N, typename Other>
std::string_view RewritePairs(std::string_view text, const std::array<BytePair, N>& pairs,
                              TextRewriter& rewriter, Other&& other) {
  DeviceOrdinals devices;
  ScanPairs(text, pairs, [&](std::size_t at) {
    switch (text[at]) {
      case '0':
        return RewriteAddress(text, at, rewriter);
      case '/':
        return RewriteCachePath(text, at, rewriter);
      default:
        return other(at, devices);
    }
  });
  return rewriter.Finish();
}

}  // namespace

std::string_view NormalizeGraph(std::string_view text, std::string& buffer) {
  text = WithoutGraphId(text);
  TextRewriter rewriter(text, buffer);
  constexpr std::array kPairs = {kAddress, kCuda, kXpu, kIndex, kEvalWithKey, kNumberedName};
  return RewritePairs(text, kPairs, rewriter, [&](std::size_t at, DeviceOrdinals& devices) {
    switch (text[at]) {
      case '>':
        return RewriteEvalWithKey(text, at, rewriter);
      case '_':
        return RewriteNumberedName(text, at, rewriter);
      default:
        return RewriteDevice(text, at, devices, rewriter);
    }
  });
}

std::string_view NormalizeCode(std::string_view text, std::string& buffer) {
  text = WithoutBenchmark(text);
  TextRewriter rewriter(text, buffer);
  constexpr std::string_view kAotId = "# AOT ID: ['";
  if (const std::size_t at = text.substr(0, 256).find(kAotId); at != std::string_view::npos) {
    rewriter.Replace(at + kAotId.size(), DigitsEnd(text, at + kAotId.size()), "");
  }
  constexpr std::array kPairs = {kAddress, kCacheFile, kProvenance,  kCuda,      kXpu,
                                 kIndex,   kStream,    kDeviceGuard, kSetDevice, kConstant};
  return RewritePairs(text, kPairs, rewriter, [&](std::size_t at, DeviceOrdinals& devices) {
    switch (text[at]) {
      case '[':
        return RewriteProvenance(text, at, rewriter);
      case ')':
        return RewriteConstant(text, at, rewriter);
      case 'u':
      case 'x':
        return RewriteDevice(text, at, devices, rewriter);
      case 'a':
        return text[at + 1] == ':' ? RewriteDevice(text, at, devices, rewriter)
                                   : RewriteStream(text, at, devices, rewriter);
      default:
        return RewriteStream(text, at, devices, rewriter);
    }
  });
}

std::string_view NormalizeGuards(std::string_view text, std::string& buffer) {
  constexpr std::string_view kLatency = "Guard latency = ";
  const std::size_t tail = text.size() > 80 ? text.size() - 80 : 0;
  if (const std::size_t at = text.substr(tail).rfind(kLatency); at != std::string_view::npos) {
    text = text.substr(0, tail + at + kLatency.size());
  }
  TextRewriter rewriter(text, buffer);
  constexpr std::array kPairs = {kAddress, kCuda, kXpu, kIndex, kNumberedName, kObjectId};
  return RewritePairs(text, kPairs, rewriter, [&](std::size_t at, DeviceOrdinals& devices) {
    switch (text[at]) {
      case '_':
        return RewriteNumberedName(text, at, rewriter);
      case ' ':
        return RewriteObjectId(text, at, rewriter);
      default:
        return RewriteDevice(text, at, devices, rewriter);
    }
  });
}

std::string_view NormalizeRunnable(std::string_view text, std::string& buffer) {
  TextRewriter rewriter(text, buffer);
  constexpr std::array kPairs = {kAddress, kCacheFile, kCuda,  kXpu,
                                 kIndex,   kLineO,     kLineT, kFakeRank};
  return RewritePairs(text, kPairs, rewriter, [&](std::size_t at, DeviceOrdinals& devices) {
    switch (text[at]) {
      case '\n':
      case 'k':
        return RewriteRunnable(text, at, rewriter);
      default:
        return RewriteDevice(text, at, devices, rewriter);
    }
  });
}

std::string_view NormalizeText(std::string_view text, std::string& buffer) {
  TextRewriter rewriter(text, buffer);
  constexpr std::array kPairs = {kAddress, kCacheFile, kCuda, kXpu, kIndex};
  return RewritePairs(text, kPairs, rewriter, [&](std::size_t at, DeviceOrdinals& devices) {
    return RewriteDevice(text, at, devices, rewriter);
  });
}

}  // namespace tlparse
