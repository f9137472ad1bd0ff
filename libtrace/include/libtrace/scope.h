// Which compile a record belongs to: a thread-local context, set by scopes.
//
// Every scope restores what it found when it ends; scopes of a thread end in reverse order (as
// automatic variables do), on that thread. One that ends before its inner ones leaves these be. A context is a value: take it with CurrentContext(), hand it to another
// thread, and open a ContextScope there. All of it works, and costs a few ns, when tracing is off.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "libtrace/compile_id.h"
#include "libtrace/export.h"

namespace libtrace LIBTRACE_EXPORT {

// A piece of the program that is compiled possibly many times (a function, a model, a graph):
// PyTorch's frame. Takes the next free frame id of the process when constructed and hands out its
// compiles: 0, 1, 2 …; thread-safe. Keep it as long as the program keeps that piece.
class Frame {
 public:
  Frame() : id_(NextId()) {}
  Frame(const Frame&) = delete;  // a copy would hand out the same compile ids again
  Frame& operator=(const Frame&) = delete;

  uint32_t id() const { return id_; }
  CompileId NextCompile() { return CompileId::Frame(id_, next_compile_.fetch_add(1)); }

 private:
  static uint32_t NextId() noexcept;

  uint32_t id_;
  std::atomic<uint32_t> next_compile_{0};
};

// The next free compiled-autograd id of the process.
uint32_t NextCompiledAutogradId() noexcept;

struct Context {
  CompileId compile_id;  // empty = outside every compile
  uint32_t attempt = 0;  // counts restarts of one compile's analysis
  std::string subgraph_name{};

  friend bool operator==(const Context& a, const Context& b) {
    return a.compile_id == b.compile_id && a.attempt == b.attempt &&
           a.subgraph_name == b.subgraph_name;
  }
  friend bool operator!=(const Context& a, const Context& b) { return !(a == b); }
};

// Of this thread. The reference is valid until the thread's innermost scope changes.
const Context& CurrentContext() noexcept;

// Makes `context` this thread's, e.g. one taken on another thread.
class ContextScope {
 public:
  explicit ContextScope(Context context) noexcept;
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 protected:
  Context& context() { return context_; }

 private:
  friend const Context& CurrentContext() noexcept;

  Context context_;
  ContextScope* outer_;
};

// Begins a compile. An id without compiled_autograd_id inherits the surrounding one, so that a
// frame compiled within compiled autograd 2 becomes !2/F/C. Attempt is 0, subgraph name empty.
class CompileScope : public ContextScope {
 public:
  explicit CompileScope(const CompileId& id) noexcept;
  explicit CompileScope(Frame& frame) noexcept : CompileScope(frame.NextCompile()) {}

  const CompileId& id() { return context().compile_id; }
  uint32_t attempt() { return context().attempt; }
  // The analysis starts over (a graph break, a failed assumption): later records carry attempt + 1.
  void Restart() { ++context().attempt; }
};

// Marks the records of one subgraph that is compiled on its own within the current compile.
class SubgraphScope : public ContextScope {
 public:
  explicit SubgraphScope(std::string_view subgraph_name) noexcept;
};

}  // namespace LIBTRACE_EXPORT
