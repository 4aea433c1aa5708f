// Shells carries shells into running hosts: frames of the client go down to the host's agent,
// frames of the host go up, and nothing of them is stored. Every frame is decoded on its way; a
// side that sends more than its window allows, or an invalid frame, ends the shell.
//
// Each shell is written to the server's log: the principal, its address, the host, the command, and
// how it ended. Records of the audit log are the API's (api/audit.hpp).
//
// Threads: callable from anywhere; a Shell is confined to one thread except for the agent's side.
// Lifetime: the Shells outlive every Shell that they opened.
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

// The server's end of one shell. Its destructor ends the shell.
class Shell {
 public:
  virtual ~Shell() = default;
  // Takes bytes of the client, in any pieces. Errors: corrupt, denied (more than the window
  // allows).
  virtual Result<void> take(std::string_view bytes) = 0;
  // Returns bytes for the client; "" when there are none now.
  virtual std::string give() = 0;
  // True when everything was given, the last frame too.
  virtual bool over() = 0;
  // Readable when give() may return bytes.
  virtual int descriptor() const = 0;
};

class Shells {
 public:
  virtual ~Shells() = default;
  // Errors: not_found (no such job or host), conflict (the host does not run, or its agent is
  // away), exhausted.
  virtual Result<std::unique_ptr<Shell>> open(const ShellOrder& order) = 0;
};

}  // namespace trainyard::gateway
