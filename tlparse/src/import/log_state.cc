#include "import/log_state.h"

namespace tlparse {

std::string_view KeptPayloads::Find(std::int64_t payload_id) const {
  const auto found = texts_.find(payload_id);
  return found == texts_.end() ? std::string_view() : found->second;
}

void KeptPayloads::Add(std::int64_t payload_id, std::string_view text) {
  if (!texts_.try_emplace(payload_id, text).second) return;
  order_.push_back(payload_id);
  bytes_ += text.size();
  // Of very many open lookups the oldest lose their components, not their rows.
  while (bytes_ > kMostBytes && order_.size() > 1) {
    const std::int64_t oldest = order_.front();
    order_.pop_front();
    Release(oldest);
  }
}

void KeptPayloads::Release(std::int64_t payload_id) {
  const auto found = texts_.find(payload_id);
  if (found == texts_.end()) return;
  bytes_ -= found->second.size();
  texts_.erase(found);
  // Ids of released payloads leave the queue from its front, so that it stays as short as the map.
  while (!order_.empty() && !texts_.contains(order_.front())) order_.pop_front();
}

}  // namespace tlparse
