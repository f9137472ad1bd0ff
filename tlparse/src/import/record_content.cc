// What the typing step gives to families of the record that is being typed: its envelope, its
// payload, and its stacks.
#include <fmt/format.h>

#include "base/json_count.h"
#include "base/json_repair.h"
#include "base/json_text.h"
#include "import/typing_step.h"
#include "log/payload_text.h"

namespace tlparse {

namespace {
// JSON payloads above this are kept but not parsed: the parser's memory is a multiple of the text.
constexpr std::size_t kMaxJsonBytes = 32 << 20;
}  // namespace

Result<simdjson::dom::element> TypingStep::EnvelopeRoot() {
  if (has_root_) return root_;
  ASSIGN_OR_RETURN(root_, ParseEnvelope());
  has_root_ = true;
  return root_;
}

Result<simdjson::dom::element> TypingStep::ParseEnvelope() {
  if (!is_too_large_ && HasTooManyJsonValues(record_.envelope)) {
    is_too_large_ = true;
    Log(ImportCode::kPayloadTooLarge,
        fmt::format("the envelope has {} bytes and more than {} values", record_.envelope.size(),
                    kMostJsonValues));
  }
  if (is_too_large_)
    return Fail(ErrorCode::kBadJson, "the envelope has too many values to be parsed");
  simdjson::dom::element root;
  if (!log_record_->envelope.was_repaired &&
      metadata_parser_.parse(record_.envelope.data(), record_.envelope.size(), false).get(root) ==
          simdjson::SUCCESS) {
    return root;
  }
  Result<RepairedJson> repaired = RepairJson(record_.envelope);
  if (!repaired) return tl::unexpected<Error>(std::move(repaired).error());
  if (metadata_parser_.parse(WithoutBigIntegers(repaired->text)).get(root) != simdjson::SUCCESS) {
    return Fail(ErrorCode::kBadJson, "the envelope is not JSON");
  }
  return root;
}

Result<simdjson::dom::element> TypingStep::Metadata() {
  // The repaired envelope is parsed as a whole: its last duplicate wins there as well.
  ASSIGN_OR_RETURN(simdjson::dom::element root, EnvelopeRoot());
  simdjson::dom::object object;
  simdjson::dom::element value;
  if (root.get(object) != simdjson::SUCCESS ||
      object.at_key(record_.kind).get(value) != simdjson::SUCCESS) {
    return Fail(ErrorCode::kBadJson, "the record has no metadata");
  }
  return value;
}

std::int64_t TypingStep::Stack(std::string_view member, bool in_metadata) {
  Result<simdjson::dom::element> root = in_metadata ? Metadata() : EnvelopeRoot();
  simdjson::dom::element frames;
  if (!root || root->at_key(member).get(frames) != simdjson::SUCCESS || !frames.is_array())
    return 0;
  std::optional<std::int64_t> unresolved;
  Result<std::int64_t> stack = stacks_.Stack(*rows_, process_->state, frames, &unresolved);
  if (unresolved &&
      log_->reported_once.insert(fmt::format("string {} {}", process_->state.id, *unresolved))
          .second) {
    Log(ImportCode::kUnresolvedString,
        fmt::format("string {} is not defined (first use)", *unresolved));
  }
  if (!stack) {
    Log(ImportCode::kBadMetadata, stack.error().message);
    return 0;
  }
  return *stack;
}

std::string_view TypingStep::Payload() {
  if (payload_) return *payload_;
  if (log_record_->payload_is_new) {
    payload_ = log_record_->payload;
  } else if (log_record_->raw_payload.empty()) {
    payload_ = std::string_view();
  } else {
    const std::string_view raw = log_record_->raw_payload;
    char* text = rows_->arena().Allocate(raw.size() + kRemoveTabsSlack);
    const bool remove_cr = log_record_->payload_state == PayloadState::kCrRemoved;
    payload_ = std::string_view(text, RemoveTabs(raw, remove_cr, text));
  }
  return *payload_;
}

std::string_view TypingStep::PayloadToParse() {
  const bool is_as_logged =
      !payload_ && !log_record_->payload_is_new && log_record_->payload_state == PayloadState::kOk;
  return is_as_logged ? log_record_->raw_payload : Payload();
}

Result<simdjson::dom::element> TypingStep::PayloadJson() {
  const std::string_view text = PayloadToParse();
  if (text.size() > kMaxJsonBytes) {
    Log(ImportCode::kPayloadTooLarge, fmt::format("the payload has {} bytes", text.size()));
    return Fail(ErrorCode::kBadJson, "the payload is too large to be parsed");
  }
  if (HasTooManyJsonValues(text)) {
    Log(ImportCode::kPayloadTooLarge,
        fmt::format("the payload has {} bytes and more than {} values", text.size(),
                    kMostJsonValues));
    return Fail(ErrorCode::kBadJson, "the payload has too many values to be parsed");
  }
  simdjson::dom::element root;
  // Arena blocks and windows have readable bytes behind them, so the text is parsed in place.
  if (payload_parser_.parse(text.data(), text.size(), false).get(root) == simdjson::SUCCESS)
    return root;
  Result<RepairedJson> repaired = RepairJson(Payload());
  if (!repaired)
    return Fail(ErrorCode::kBadJson,
                fmt::format("the payload is not JSON: {}", repaired.error().message));
  if (payload_parser_.parse(WithoutBigIntegers(repaired->text)).get(root) != simdjson::SUCCESS) {
    return Fail(ErrorCode::kBadJson, "the payload is not JSON");
  }
  return root;
}

std::string_view TypingStep::KeptPayload(std::int64_t payload_id) {
  return log_->kept.Find(payload_id, load_payload);
}
void TypingStep::KeepPayload() {
  if (record_.payload_id != 0 && !log_->kept.Has(record_.payload_id))
    log_->kept.Add(record_.payload_id, Payload());
}
void TypingStep::ReleasePayload(std::int64_t payload_id) { log_->kept.Release(payload_id); }

}  // namespace tlparse
