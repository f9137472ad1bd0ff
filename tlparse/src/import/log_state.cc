#include "import/log_state.h"

namespace tlparse {

std::string_view KeptPayloads::Find(std::int64_t payload_id, const Load& load) {
  const auto found = texts_.find(payload_id);
  if (found == texts_.end()) return {};
  if (!found->second.text) found->second.text = load(payload_id);
  return *found->second.text;
}

void KeptPayloads::SetAside() {
  for (auto& [id, kept] : texts_) kept.text.reset();
}

void KeptPayloads::Add(std::int64_t payload_id, std::string_view text) {
  const auto [kept, is_new] = texts_.try_emplace(payload_id);
  if (!is_new) return;
  kept->second = {text.size(), std::string(text)};
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
  bytes_ -= found->second.size;
  texts_.erase(found);
  // Ids of released payloads leave the queue from its front, so that it stays as short as the map.
  while (!order_.empty() && !texts_.contains(order_.front())) order_.pop_front();
}

}  // namespace tlparse
