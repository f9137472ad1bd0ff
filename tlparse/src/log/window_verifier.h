// The second step of reading: finds the records of a window and verifies their payloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/md5.h"
#include "log/envelope.h"
#include "log/line_index.h"
#include "log/payload_text.h"
#include "log/read_shared.h"
#include "log/window.h"

namespace tlparse {

// One for each thread: windows of any files may be verified at the same time and in any order. What
// depends on earlier windows (line numbers, ids of payloads, missing times) is left to
// WindowSettler.
class WindowVerifier {
 public:
  // `shared` outlives the verifier.
  explicit WindowVerifier(ReadShared& shared);

  // Divides the filled window into records and problems; computes the MD5 of unknown payloads.
  void Verify(Window& window);

 private:
  // A payload that was not in the database when the window was verified.
  struct Unknown {
    std::size_t record;
    std::uint64_t fingerprint;
    bool removed_cr;
  };
  void Split(Window& window);
  // Each takes one stanza (a line that does not begin with a TAB, and the TAB lines after it) whose first line is: a header; a
  // header with damaged JSON; a header with a damaged prefix (false: it is none); any other line.
  void AddHeader(Window& window, std::string_view stanza, const GlogPrefix& prefix,
                 std::int64_t line);
  static void AddBroken(Window& window, std::string_view stanza, std::int64_t line,
                        std::string_view what);
  bool AddDamaged(Window& window, std::string_view stanza, std::int64_t line);
  void AddForeign(Window& window, std::string_view stanza, std::int64_t line);
  // Adds payload lines that other lines separate from their record. False: its payload is complete without them.
  bool AddTorn(Window& window, std::size_t record, std::string_view lines);
  void SetTime(Window& window, LogRecord& record);
  // Gives records whose payload is in the database its id; collects the others in unknown_.
  void FindKnown(Window& window);
  void FindUnknown(Window& window);
  // Sets the payload's content and state: `md5` is that of `content`, with or without CRs at the ends of lines.
  void Judge(Window& window, const Unknown& unknown, std::string_view content, Md5Digest md5);
  static void AddPayloadProblems(Window& window);

  ReadShared& shared_;
  EnvelopeParser parser_;
  // Records are numbered within the window.
  std::unordered_map<std::size_t, TornPayload> torn_;  // by record
  // The record that TAB lines below a foreign line belong to; nothing: there is none.
  std::optional<std::size_t> open_record_;
  // The record that lines "[rank3]:<TAB>…" belong to, by rank.
  std::unordered_map<std::int64_t, std::size_t> latest_of_rank_;

  // Scratch.
  std::vector<StanzaStart> stanzas_;
  std::vector<std::uint64_t> fingerprints_;  // by record of the window; 0: none
  std::vector<Unknown> unknown_;
  std::vector<std::string_view> messages_;
  std::vector<Md5Digest> digests_;
};

}  // namespace tlparse
