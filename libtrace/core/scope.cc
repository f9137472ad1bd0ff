#include "libtrace/scope.h"

#include <utility>

namespace libtrace {
namespace {

// A pointer to the innermost scope's context: constant initialisation, no destructor, so that
// records emitted while a thread ends find it usable.
thread_local const Context* t_context = nullptr;

// Outside every scope. Never destroyed, because records are emitted during exit, and made without
// the guard of a static object: a child that is forked while another thread makes it would wait.
std::atomic<const Context*> g_no_context{nullptr};

const Context& NoContext() {
  const Context* known = g_no_context.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto* const made = new Context;
  if (g_no_context.compare_exchange_strong(known, made)) return *made;
  delete made;  // another thread came first
  return *known;
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

const Context& CurrentContext() noexcept { return t_context != nullptr ? *t_context : NoContext(); }

ContextScope::ContextScope(Context context) noexcept
    : context_(std::move(context)), previous_(t_context) {
  t_context = &context_;
}

ContextScope::~ContextScope() { t_context = previous_; }

CompileScope::CompileScope(const CompileId& id) noexcept : ContextScope(ContextOf(id)) {}

SubgraphScope::SubgraphScope(std::string_view subgraph_name) noexcept
    : ContextScope(WithSubgraph(subgraph_name)) {}

}  // namespace libtrace
