#include "libtrace/scope.h"

#include <utility>

#include "core/errno_scope.h"
#include "core/per_process.h"

namespace libtrace {
namespace {

// The innermost scope. A pointer: constant initialisation, no destructor, so that records emitted
// while a thread ends find it usable.
thread_local ContextScope* t_scope = nullptr;

// Outside every scope.
constinit std::atomic<Context*> g_no_context{nullptr};

const Context& NoContext() {
  if (const Context* const known = g_no_context.load(std::memory_order_acquire)) return *known;
  const detail::ErrnoScope keeps_errno;
  return detail::MadeOnce(g_no_context);
}

std::atomic<uint32_t> g_next_frame_id{0};
std::atomic<uint32_t> g_next_compiled_autograd_id{0};

Context ContextOf(const CompileId& id) {
  Context context;
  context.compile_id = id;
  if (!id.compiled_autograd_id) {
    context.compile_id.compiled_autograd_id = CurrentContext().compile_id.compiled_autograd_id;
  }
  return context;
}

Context WithSubgraph(std::string_view name) {
  const detail::ErrnoScope keeps_errno;
  Context context;
  context.compile_id = CurrentContext().compile_id;
  context.attempt = CurrentContext().attempt;
  try {
    context.subgraph_name = name;
  } catch (...) {  // no memory: records then lack the name
  }
  return context;
}

}  // namespace

uint32_t Frame::NextId() noexcept { return g_next_frame_id.fetch_add(1); }
uint32_t NextCompiledAutogradId() noexcept { return g_next_compiled_autograd_id.fetch_add(1); }

const Context& CurrentContext() noexcept {
  return t_scope != nullptr ? t_scope->context_ : NoContext();
}

ContextScope::ContextScope(Context context) noexcept
    : context_(std::move(context)), outer_(t_scope) {
  t_scope = this;
}

ContextScope::~ContextScope() {
  // Usually the first one. In C the order is the caller's.
  ContextScope** place = &t_scope;
  while (*place != this && *place != nullptr) place = &(*place)->outer_;
  if (*place == this) *place = outer_;
}

CompileScope::CompileScope(const CompileId& id) noexcept : ContextScope(ContextOf(id)) {}

SubgraphScope::SubgraphScope(std::string_view subgraph_name) noexcept
    : ContextScope(WithSubgraph(subgraph_name)) {}

}  // namespace libtrace
