// Shells into running hosts, as the server carries them: frames of who types go down to the host's agent, frames from
// inside go up, and nothing of them is kept. Every frame is decoded on its way; who sends more than he was given room
// for, or what is no frame of his, ends the shell.
//
// Each shell is written into the server's log: who, from where, into what, what command, and how it ended. Records of the
// audit log are the API's (api/audit.hpp).
//
// Threads: callable from anywhere; a Shell is confined to one thread but for what agents do to it. Lifetime: the Shells
// outlive every Shell they gave out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::gateway {

inline constexpr size_t kShellsOfServerMax = 32;  // each holds a thread of the HTTP server's pool

struct ShellOrder {
  domain::JobKey job;
  domain::HostIndex host = 0;
  std::vector<std::string> command;  // empty: a shell
  bool terminal = true;
  std::string terminal_name;
  uint32_t columns = 80, rows = 24;
  std::string principal;  // for the log
  std::string peer;
};

// One shell's end at the server. Destroyed: it ends.
class Shell {
 public:
  virtual ~Shell() = default;
  // Bytes of who types, in any pieces. Errors: corrupt, denied (more than there is room for).
  virtual Result<void> take(std::string_view bytes) = 0;
  // Bytes for who types; "" when there are none now.
  virtual std::string give() = 0;
  // All was given: the last frame too.
  virtual bool over() = 0;
  // Readable when there may be something to give.
  virtual int descriptor() const = 0;
};

class Shells {
 public:
  virtual ~Shells() = default;
  // Errors: not_found (no such job or host), conflict (the host does not run, or its agent is away), exhausted.
  virtual Result<std::unique_ptr<Shell>> open(const ShellOrder& order) = 0;
};

}  // namespace trainyard::gateway
