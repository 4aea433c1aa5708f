#include "entry/helpers.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "base/ranks/variables.hpp"
#include "base/text.hpp"
#include "contract/aws_texts.hpp"
#include "contract/contract.hpp"
#include "entry/children.hpp"
#include "entry/failure.hpp"
#include "entry/gpus.hpp"
#include "entry/plan.hpp"
#include "entry/sockets.hpp"

namespace trainyard::entry {
namespace {

constexpr int kNoEntryCode = 255;  // ssh's code when it cannot connect

// Returns the first number among the variables that launchers of MPI set; 0 without one.
int whole_number(const Variables& variables, std::string_view RankVariables::*name) {
  for (const RankVariables& names : kRankVariables) {
    if (!names.of_mpi) continue;
    if (const auto number = parse_int(contract::variable_of(variables, std::string(names.*name))))
      return static_cast<int>(*number);
  }
  return 0;
}

// Ends this process with the rank's exit code or signal, so that the launcher reports it correctly.
int end_as(int code) {
  if (code > 128 && code < 128 + 65) {
    const int number = code - 128;
    ::signal(number, SIG_DFL);
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, number);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::raise(number);
  }
  return code;
}

}  // namespace

MpiRank mpi_rank_in(const Variables& variables) {
  return {whole_number(variables, &RankVariables::rank),
          whole_number(variables, &RankVariables::local_rank)};
}

int start_on(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    write_all(STDERR_FILENO, "trainyard-entry: --start-on needs a host and a command\n");
    return 2;
  }
  auto socket = connect_to_entry();
  if (!socket) {
    write_all(STDERR_FILENO, "trainyard-entry: " + socket.error().message + "\n");
    return kNoEntryCode;
  }
  std::string line;
  for (size_t i = 1; i < arguments.size(); ++i) line += (i == 1 ? "" : " ") + arguments[i];
  Link link(std::move(*socket));
  if (!link.send(RunOn{arguments[0], line})) return kNoEntryCode;
  while (link.receive()) {
    const auto message = link.next();
    if (!message) return kNoEntryCode;
    if (!*message) continue;
    if (const auto* ended = std::get_if<Ended>(&**message)) return ended->code;
  }
  return kNoEntryCode;
}

int run_rank(const std::vector<std::string>& arguments, const Variables& variables) {
  if (arguments.empty()) {
    write_all(STDERR_FILENO, "trainyard-entry: --rank needs a program\n");
    return 2;
  }
  Signals signals;
  std::optional<Link> entry;
  const MpiRank ranks = mpi_rank_in(variables);
  const int rank = ranks.rank;
  if (auto socket = connect_to_entry()) {
    entry.emplace(std::move(*socket));
    if (!entry->send(Rank{rank})) entry.reset();
  }
  Command command{arguments, variables, "."};
  std::vector<std::vector<int>> gpu_cpus;
  for (const auto& gpu : find_gpus()) gpu_cpus.push_back(gpu.cpus);
  Pin pin = pin_of_rank(ranks.local_rank, gpu_cpus, variables);
  for (const auto& [name, value] : pin.variables) command.variables[name] = value;
  command.cpus = std::move(pin.cpus);
  const std::string host = contract::variable_of(variables, "SM_CURRENT_HOST");
  const auto report = [&](int code, const Printed& printed, const std::string& line) {
    Failure failure{host, rank, code, ""};
    if (entry)
      (void)entry->send(Failed{
          rank, code, describe_failure(contract::kUserScriptError, failure, true, printed, line)});
  };
  Children children;
  Children::Kind kind;
  kind.whole_lines = true;  // mpirun adds its prefix to each piece of text that it reads
  if (auto started = children.start(std::move(command), std::move(kind)); !started) {
    write_all(STDERR_FILENO, started.error().message + "\n");
    report(127, {started.error().message}, arguments[0]);
    return 127;
  }
  for (;;) {
    std::vector<pollfd> waits = {{signals.descriptor(), POLLIN, 0}};
    children.add_waits(waits);
    if (entry) waits.push_back({entry->descriptor(), POLLIN, 0});
    ::poll(waits.data(), waits.size(), -1);
    if (signals.take()) children.request_end();
    if (entry && (waits.back().revents & (POLLIN | POLLHUP)) != 0) {
      // Any message or end of the connection means that the rank must end.
      if (!entry->receive()) entry.reset();
      if (entry) {
        if (const auto message = entry->next();
            message && *message && std::holds_alternative<End>(**message))
          children.request_end();
      }
    }
    children.pump();
    for (const auto& exit : children.reap()) {
      if (exit.code != 0) report(exit.code, exit.printed, exit.command);
      return end_as(exit.code);
    }
  }
}

}  // namespace trainyard::entry
