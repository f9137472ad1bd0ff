// The collectives, sends and receives of a Kineto profile.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "inputs/kineto/file.h"
#include "rows/profile.h"

namespace tlparse::kineto {
namespace {

constexpr std::size_t kMostCollectives = 100'000;  // of one file, in memory

// Of symm_mem the ops that all ranks of a group must call.
bool IsSymmetricCollective(std::string_view name) {
  constexpr std::string_view kWords[] = {"all_reduce", "all_gather", "reduce_scatter",
                                         "all_to_all", "broadcast",  "barrier"};
  return name.starts_with("symm_mem::") && std::ranges::any_of(kWords, [&](std::string_view word) {
           return name.find(word) != name.npos;
         });
}

// A functional collective (_c10d_functional) calls one of c10d's, or is traced with tensors that hold
// nothing: torch/csrc/distributed/c10d/Functional.cpp.
bool IsCollectiveOp(std::string_view name) {
  return IsSymmetricCollective(name) ||
         (name.starts_with("c10d::") && name != "c10d::monitored_barrier_");
}

// The number at that place of "Concrete Inputs": ["", "", "2", "0"].
std::optional<std::int64_t> NumberAt(std::string_view values, std::size_t place) {
  for (std::size_t from = values.find('"'); from != values.npos;) {
    const std::size_t to = values.find('"', from + 1);
    if (to == values.npos) break;
    if (place-- == 0) {
      const std::string_view text = values.substr(from + 1, to - from - 1);
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      const bool is_number = error == std::errc() && end == text.data() + text.size();
      return is_number ? std::optional(number) : std::nullopt;
    }
    from = values.find('"', to + 1);
  }
  return std::nullopt;
}

}  // namespace

// The slice of the CPU ends when the call returns, the collective when its kernel does.
void KinetoFile::TakeCollectiveKernel(const KinetoEvent& event,
                                      std::optional<std::int64_t> device) {
  if (!event.external_id || collective_kernels_.size() >= kMostCollectives ||
      (event.collective.empty() && !event.name.starts_with("nccl")))
    return;
  const std::int64_t end_ns = Start(event) + event.duration_ns.value_or(0);
  const auto [kernel, is_new] = collective_kernels_.try_emplace(
      *event.external_id, CollectiveKernel{Start(event), end_ns, device, event.correlation});
  if (is_new) return;
  kernel->second.start_ns = std::min(kernel->second.start_ns, Start(event));
  kernel->second.end_ns = std::max(kernel->second.end_ns, end_ns);
}

// record_param_comms says what, in which group, and which one; the c10d op around it (and all there
// is with Gloo) says when only.
void KinetoFile::TakeCollective(const KinetoEvent& event) {
  if (event.name == "record_param_comms" ? event.collective.empty() : !IsCollectiveOp(event.name))
    return;
  const std::int64_t start_ns = Start(event);
  const std::int64_t end_ns = start_ns + event.duration_ns.value_or(0);
  if (event.collective.empty()) {
    if (collective_ops_.size() >= kMostCollectives)
      return Count(left_out_, "collectives without a group", event.duration_ns);
    CollectiveOp op{start_ns,
                    end_ns,
                    ThreadId(event),
                    context_.Text(event.name),
                    std::string(event.shapes),
                    std::string(event.dtype),
                    IsSymmetricCollective(event.name),
                    event.name.starts_with("c10d::send") || event.name.starts_with("c10d::recv"),
                    {},
                    {}};
    // (tensors, group, peer, tag)
    if (event.name == "c10d::send" || event.name == "c10d::recv_") {
      op.peer = NumberAt(event.values, 2);
      op.tag = NumberAt(event.values, 3);
    }
    collective_ops_.push_back(std::move(op));
    return;
  }
  if (event.collective == "wait" || event.collective == "init") return;
  has_named_collectives_ = true;
  const bool is_p2p = event.collective.starts_with("send") || event.collective.starts_with("recv");
  const auto elements = [](std::optional<std::int64_t> count) {
    return count ? fmt::format("[[{}]]", *count) : std::string();
  };
  const std::string in = elements(event.in_elements);
  const std::string out = elements(event.out_elements);
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<RowText>(text);
  };
  const std::int64_t id = context_.NextId<CollectiveRunRow>();
  if (event.external_id && named_collectives_.size() < kMostCollectives)
    named_collectives_.emplace_back(*event.external_id, id);
  rows().Add(CollectiveRunRow{.id = id,
                              .profile_id = context_.profile_id(),
                              .thread_id = ThreadId(event),
                              .op_id = context_.OptionalText(event.collective),
                              .group_id = context_.OptionalText(event.group_name),
                              .group_size = event.group_size,
                              .sequence_number = event.sequence_in_group,
                              .is_p2p = is_p2p ? 1 : 0,
                              .peer_rank = is_p2p ? event.peer_rank : std::nullopt,
                              .input_shapes = text_or_null(in),
                              .output_shapes = text_or_null(out),
                              .dtype_id = context_.OptionalText(event.dtype),
                              .start_ns = start_ns});
}

Result<void> KinetoFile::AddCollectiveOps() {
  for (const CollectiveOp& op : collective_ops_) {
    if (has_named_collectives_ && !op.is_symmetric) continue;
    RETURN_IF_ERROR(context_.Flush());
    rows().Add(CollectiveRunRow{
        .id = context_.NextId<CollectiveRunRow>(),
        .profile_id = context_.profile_id(),
        .thread_id = op.thread_id,
        .op_id = op.op_id,
        .is_p2p = op.is_p2p ? 1 : 0,
        .peer_of_group = op.peer,
        .tag = op.tag,
        .input_shapes = op.shapes.empty() ? std::nullopt : std::optional<RowText>(op.shapes),
        .dtype_id = context_.OptionalText(op.dtype),
        .start_ns = op.start_ns,
        .end_ns = op.end_ns});
  }
  return {};
}

Result<void> KinetoFile::AddCollectiveEnds() {
  if (collective_kernels_.empty() || named_collectives_.empty()) return {};
  RETURN_IF_ERROR(context_.Write());
  ASSIGN_OR_RETURN(Statement end,
                   context_.database().Prepare(
                       "UPDATE collective_run_row "
                       "SET end_ns = ?2, device = ?3, correlation = ?4, device_start_ns = ?5, "
                       "state = 'completed' "
                       "WHERE id = ?1 AND start_ns <= ?2"));
  for (const auto& [external_id, row_id] : named_collectives_) {
    const auto kernel = collective_kernels_.find(external_id);
    if (kernel == collective_kernels_.end()) continue;
    end.Bind(1, row_id);
    end.Bind(2, kernel->second.end_ns);
    end.Bind(3, kernel->second.device);
    end.Bind(4, kernel->second.correlation);
    end.Bind(5, kernel->second.start_ns);
    RETURN_IF_ERROR(end.Run());
  }
  return {};
}

}  // namespace tlparse::kineto
