// `trainyard shell`: opens a shell in a running host.
#include "cli/commands.hpp"
#include "cli/shell_session.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kKeyWait = 1s;

}  // namespace

Result<int> shell_command(CommandContext& context, const Arguments& arguments) {
  const FoundJob found = TRY(find_job(context, arguments.operands[0], JobScope::unfinished));
  client::ShellRequest request;
  request.job = found.job.name;
  // ID#NODE names the host.
  if (!found.node && arguments.operands.size() < 2)
    return invalid("missing argument HOST: algo-1, algo-2, ..; of a multi-node parallel job " +
                   found.job.name + "#NODE names it");
  request.host = found.node ? *found.node : TRY(host_index(arguments.operands[1]));
  request.command.assign(arguments.operands.begin() + (found.node ? 1 : 2),
                         arguments.operands.end());
  const auto shape = context.terminal.shape();
  request.terminal = shape.input && shape.output && !arguments.has("--no-terminal");
  request.terminal_name = context.terminal_name.empty() ? "dumb" : context.terminal_name;
  if (shape.columns > 0 && shape.rows > 0)
    request.columns = uint32_t(shape.columns), request.rows = uint32_t(shape.rows);
  const auto connection = TRY(context.client.open_shell(request));

  context.terminal.watch_interrupts();  // in raw mode, changes of size are the only events
  std::unique_ptr<os::RawTerminal> raw;
  if (request.terminal) raw = TRY(context.terminal.raw());
  ShellSession session(request.terminal);
  while (!session.ended() && !session.left()) {
    for (;;) {
      auto bytes = connection->read();
      if (!bytes && !session.ended()) return std::move(bytes).error();
      if (!bytes || bytes->empty()) break;
      TRY(context.terminal.write(TRY(session.receive(*bytes))));
    }
    if (session.ended()) break;
    if (const auto out = session.send(); !out.empty()) TRY(connection->write(out));
    const auto event =
        context.terminal.wait(kKeyWait, session.window_open(), connection->descriptor());
    if (event.interrupted) return kExitInterrupted;
    if (event.resized) {
      const auto now = context.terminal.shape();
      session.resize(uint32_t(now.columns), uint32_t(now.rows));
    }
    session.type(event.input);
    if (event.input_ended) session.input_ends();
  }
  raw.reset();
  if (session.left()) {
    context.terminal.write_error("\ntrainyard: left the shell\n");
    return 0;
  }
  if (!session.ended()->reason.empty()) {
    if (session.ended()->exit_code < 0) return conflict(session.ended()->reason);
    context.terminal.write_error("trainyard: " + session.ended()->reason + "\n");
  }
  return session.ended()->exit_code & 0xFF;
}

}  // namespace trainyard::cli
