// Reads requests that open a shell in a running host, and carries the shell's bytes.
//
// GET /trainyard/shell requests an upgrade, signed like any request of Trainyard's own API. It
// needs the permission trainyard:Shell on the job. docs/formats/shell.md describes the bytes after
// the upgrade.
//
// Threads: read_shell_request() is a pure function; carry_shell() occupies the thread of its stream
// until the shell ends.
#pragma once

#include <string_view>

#include "base/result.hpp"
#include "gateway/shells.hpp"
#include "net/http_server.hpp"

namespace trainyard::api {

inline constexpr std::string_view kShellPath = "/trainyard/shell";
inline constexpr std::string_view kShellProtocol = "trainyard-shell";

bool is_shell_request(const net::RequestHead& head);

// Reads all members except region, principal and peer. `query`: job=NAME&host=INDEX&request=JSON,
// with the JSON {"command": [text..], "terminal": bool, "terminal_name": text, "columns": n,
// "rows": n}; each member is optional. Errors: invalid, naming the member.
Result<gateway::ShellOrder> read_shell_request(std::string_view query);

// Carries bytes between the client and the shell until either side ends. Errors: those of the
// upgrade; later errors end the shell.
Result<void> carry_shell(net::Stream& stream, gateway::Shell& shell);

}  // namespace trainyard::api
