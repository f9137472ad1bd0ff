#include "libtrace/artifacts/run_digest.h"

#include <exception>

#include "core/digest.h"
#include "core/errno_scope.h"
#include "libtrace/trace.h"

namespace libtrace {

RunDigest::RunDigest(std::string_view graph, uint64_t call) noexcept : call_(call) {
  has_all_ = IsEnabled();
  if (!has_all_) return;
  const detail::ErrnoScope keeps_errno;
  try {
    graph_ = graph;
  } catch (const std::exception&) {  // no memory
    has_all_ = false;
  }
}

void RunDigest::Add(std::string_view kind, std::string_view name, std::string_view text,
                    std::string_view bytes) noexcept {
  if (!IsEnabled()) has_all_ = false;
  if (!has_all_) return;
  const detail::ErrnoScope keeps_errno;
  try {
    parts_.push_back(
        {kind, std::string(name), std::string(text), detail::Base32Key(detail::Sha256Of(bytes))});
  } catch (const std::exception&) {
    has_all_ = false;
  }
}

RunDigest& RunDigest::Output(std::string_view name, std::string_view type,
                             std::string_view bytes) noexcept {
  Add("output", name, type, bytes);
  return *this;
}

RunDigest& RunDigest::Kernel(std::string_view name, std::string_view code) noexcept {
  Add("kernel", name, {}, code);
  return *this;
}

RunDigest& RunDigest::Choice(std::string_view name, std::string_view choice) noexcept {
  Add("choice", name, choice, choice);
  return *this;
}

RunDigest& RunDigest::PartsOf(const RunDigest& other) noexcept {
  has_all_ = has_all_ && other.has_all_;
  if (!has_all_) return *this;
  const detail::ErrnoScope keeps_errno;
  try {
    parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
  } catch (const std::exception&) {
    has_all_ = false;
  }
  return *this;
}

void RunDigest::Emit(CallSite location) const noexcept {
  if (parts_.empty() || !has_all_) return;
  EmitOptions options;
  options.expects_compile_id = false;
  EmitJsonArtifact(
      "libtrace_run_digest", JsonStyle::kOneLine,
      [&](JsonWriter& json) {
        json.BeginObject().Field("graph", graph_).Field("call", call_).Key("parts").BeginArray();
        for (const Part& part : parts_) {
          json.BeginObject().Field("kind", part.kind).Field("name", part.name);
          if (!part.text.empty()) json.Field("text", part.text);
          json.Field("hash", part.hash).EndObject();
        }
        json.EndArray().EndObject();
      },
      options, location);
}

}  // namespace libtrace
