// Shells opens shells in running hosts. It forwards frames between the client and the host's agent,
// and stores nothing. It decodes every frame; a side that sends an invalid frame, or more than its
// window allows, ends the shell.
//
// The server's log has each shell: the principal, its address, the host, the command, and how it
// ended. The API layer writes the audit log (api/audit.hpp).
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

inline constexpr size_t kShellsOfServerMax = 32;  // each occupies a thread of the HTTP server

struct ShellOrder {
  domain::JobKey job;
  domain::HostIndex host = 0;
  std::vector<std::string> command;  // empty: the login shell
  bool terminal = true;
  std::string terminal_name;
  uint32_t columns = 80, rows = 24;
  std::string principal;  // for the server's log
  std::string peer;       // the client's address, for the server's log
};

// The server's end of one shell. Its destructor ends the shell.
class Shell {
 public:
  virtual ~Shell() = default;
  // Accepts bytes of the client; frames may be split anywhere. Errors: corrupt, denied (more than
  // the window allows).
  virtual Result<void> take(std::string_view bytes) = 0;
  // Returns bytes for the client; "" if there are none now.
  virtual std::string give() = 0;
  // Returns true once the shell has ended and give() has returned everything.
  virtual bool over() = 0;
  // Returns a descriptor that is readable when give() may return bytes.
  virtual int descriptor() const = 0;
};

class Shells {
 public:
  virtual ~Shells() = default;
  // Errors: not_found (no such job or host), conflict (the host does not run, or its agent is not
  // connected), exhausted.
  virtual Result<std::unique_ptr<Shell>> open(const ShellOrder& order) = 0;
};

}  // namespace trainyard::gateway
