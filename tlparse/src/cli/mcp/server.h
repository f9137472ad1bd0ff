// A server of the Model Context Protocol over two pipes.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/mcp/databases.h"
#include "cli/mcp/messages.h"
#include "cli/mcp/tools.h"
#include "store/known_answers.h"

namespace tlparse {

// Answers requests in the order in which they come, ping and notifications/cancelled at once. Each
// tool runs in a child process. Not to be used by a process with other threads.
class McpServer {
 public:
  McpServer(std::vector<std::string> names, int input, int output)
      : databases_(std::move(names)), input_(input), output_(output) {}
  // Until the input ends, or the client is gone.
  void Run();

 private:
  // Reads what is there; false: the input has ended.
  bool ReadInput();
  void Accept(std::string_view line);
  void Cancel(const McpMessage& message);
  void Answer(const McpMessage& message);
  void Initialize(const McpMessage& message);
  // false: nothing is left to prepare, or it was interrupted.
  bool Prepare();
  void ListTools(const McpMessage& message);
  void CallTool(const McpMessage& message);
  void ListResources(const McpMessage& message);
  void ReadResource(const McpMessage& message);
  void ListPrompts(const McpMessage& message);
  void GetPrompt(const McpMessage& message);
  Result<std::string> AnswerOf(const McpTool& tool, const McpCall& call);
  Result<std::string> OpenDatabase(const McpCall& call);
  // What the command of a tool prints, from an earlier call if the database is as it was then.
  Result<std::string> OutputOf(const McpTool& tool, const McpCall& call, const std::string& path,
                               const ChildLimits& limits);
  // Also one that was made when the logs were read. nullptr: it is not known.
  std::shared_ptr<const std::string> FindKnown(const DatabaseState& state,
                                               const KnownAnswers::Question& question);
  Result<ChildAnswer> RunTool(const McpTool& tool, const McpCall& call, const std::string& path,
                              const std::vector<std::string>& arguments, const ChildLimits& limits);
  ChildLimits Limits(int seconds);
  void Send(const std::string& line);

  McpDatabases databases_;
  KnownAnswers known_;
  std::size_t prepared_ = 0;               // how many tools
  std::vector<std::int64_t> prepared_of_;  // of which state
  bool is_initialized_ = false;
  int input_, output_;
  std::string pending_;       // the begin of a line
  bool is_too_long_ = false;  // the line whose rest is dropped
  bool has_input_ended_ = false;
  bool is_client_gone_ = false;
  bool is_cancelled_ = false;  // the request that is answered
  std::string current_id_;
  std::deque<McpMessage> queue_;
};

}  // namespace tlparse
