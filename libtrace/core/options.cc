#include "libtrace/options.h"

#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/errno_scope.h"

namespace libtrace {
namespace {

std::string_view Variable(const char* name) {
  const char* const value = secure_getenv(name);  // none in a set-user-ID program
  return value == nullptr ? std::string_view() : value;
}

// Reads variables and remembers the ones that make no sense.
class EnvironmentReader {
 public:
  void Size(const char* name, uint64_t& value) {
    const std::string_view text = Variable(name);
    if (text.empty()) return;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    constexpr std::string_view kUnits = "KMG";
    int shift = 0;
    if (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos) {
      shift = 10 * (static_cast<int>(kUnits.find(unit[0])) + 1);
    } else if (!unit.empty()) {
      return Complain(name, text, "a size such as 64M");
    }
    if (error != std::errc() || number > UINT64_MAX >> shift) {
      return Complain(name, text, "a size such as 64M");
    }
    value = number << shift;
  }

  // `<kind>=100/s,<kind>=1/50`
  void Limits(const char* name, std::vector<RecordLimit>& limits) {
    std::string_view rest = Variable(name);
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      const size_t equals = item.rfind('=');
      const size_t slash = item.rfind('/');
      RecordLimit limit;
      bool is_good = equals != std::string_view::npos && equals != 0 &&
                     slash != std::string_view::npos && slash > equals;
      if (is_good) {
        limit.kind = item.substr(0, equals);
        const std::string_view before = item.substr(equals + 1, slash - equals - 1);
        const std::string_view after = item.substr(slash + 1);
        is_good = after == "s" ? Number(before, limit.per_second) && limit.per_second != 0
                               : before == "1" && Number(after, limit.one_of) && limit.one_of != 0;
      }
      if (is_good) {
        limits.push_back(std::move(limit));
      } else {
        Complain(name, item, "kinds with 100/s or 1/50");
      }
    }
  }

  template <class E, size_t N>
  void OneOf(const char* name, E& value, const std::pair<std::string_view, E> (&choices)[N]) {
    const std::string_view text = Variable(name);
    if (text.empty()) return;
    std::string expected;
    for (const auto& [choice, meaning] : choices) {
      if (choice == text) {
        value = meaning;
        return;
      }
      expected.append(expected.empty() ? "" : ", ").append(choice);
    }
    Complain(name, text, "one of " + expected);
  }

  void Flag(const char* name, bool& value) { OneOf(name, value, {{"0", false}, {"1", true}}); }

  void Rank(const char* name, std::optional<uint32_t>& rank) {
    const std::string_view text = Variable(name);
    if (text.empty()) return;
    uint32_t number = 0;
    if (!Number(text, number)) return Complain(name, text, "a number");
    rank = number;
  }

  const std::string& complaints() const { return complaints_; }

 private:
  static bool Number(std::string_view text, uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }

  void Complain(const char* name, std::string_view value, const std::string& expected) {
    if (!complaints_.empty()) complaints_ += "; ";
    complaints_.append(name).append("=").append(value).append(" ignored: expected ");
    complaints_.append(expected);
  }

  std::string complaints_;
};

}  // namespace

Options Options::FromEnvironment() {
  const detail::ErrnoScope keeps_errno;
  Options options;
  EnvironmentReader environment;
  bool is_disabled = false;
  options.directory = Variable("TORCH_TRACE");
  if (const std::string_view detail = Variable("TORCH_DTRACE"); !detail.empty()) {
    options.directory = detail;
    options.detail = true;
  }
  if (const std::string_view own = Variable("LIBTRACE_DIR"); !own.empty()) options.directory = own;
  environment.Flag("LIBTRACE_DETAIL", options.detail);
  environment.Flag("LIBTRACE_DISABLE", is_disabled);
  if (is_disabled) options.directory.clear();
  environment.Rank("RANK", options.rank);
  environment.OneOf(
      "LIBTRACE_ASYNC", options.async,
      {{"off", AsyncMode::kOff}, {"block", AsyncMode::kBlock}, {"drop", AsyncMode::kDrop}});
  environment.Size("LIBTRACE_QUEUE_BYTES", options.queue_size_bytes);
  environment.Size("LIBTRACE_ROTATE_BYTES", options.rotate_size_bytes);
  environment.Size("LIBTRACE_BUDGET_BYTES", options.budget_size_bytes);
  environment.Size("LIBTRACE_MAX_PAYLOAD_BYTES", options.max_payload_size_bytes);
  environment.Limits("LIBTRACE_LIMITS", options.limits);
  environment.OneOf(
      "LIBTRACE_STACKS", options.stacks,
      {{"off", StackMode::kOff}, {"site", StackMode::kCallSite}, {"full", StackMode::kBacktrace}});
  environment.OneOf("LIBTRACE_PROVENANCE", options.provenance,
                    {{"off", ProvenanceLevel::kOff},
                     {"default", ProvenanceLevel::kDefault},
                     {"full", ProvenanceLevel::kFull}});
  options.source_root = Variable("LIBTRACE_SOURCE_ROOT");
  options.complaints = environment.complaints();
  return options;
}

}  // namespace libtrace
