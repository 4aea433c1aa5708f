#include "agent/shells.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "os/notifier.hpp"
#include "wire/shell.hpp"

namespace trainyard::agent {
namespace {

constexpr Duration kShellLookInterval = 1s;
// Retry interval for unwritten input: a terminal does not signal free space.
constexpr Duration kInputInterval = 10ms;

}  // namespace

struct Shells::Shell {
  wire::OpenShell order;
  os::Notifier notifier;
  std::thread thread;
  std::atomic<bool> closed = false;  // without a reader
  std::atomic<bool> over = false;    // its thread is about to end

  Mutex mutex;
  std::deque<wire::ShellFrame> frames
      GUARDED_BY(mutex);  // from the client: at most a window of input, and small ones
  // bytes of output that may still be sent
  uint32_t credit GUARDED_BY(mutex) = wire::kShellWindowBytes;
  // bytes of input that were not credited yet
  uint32_t input_held GUARDED_BY(mutex) = 0;

  // of the shell's thread
  std::string input;  // received and not yet written
  bool input_ends = false;

  // Applies the client's frames. Returns the number of bytes of output that may be sent.
  uint32_t apply_frames(containers::ExecProcess& process) {
    notifier.clear();
    const MutexLock lock(mutex);
    while (!frames.empty()) {
      const wire::ShellFrame frame = std::move(frames.front());
      frames.pop_front();
      if (const auto* more = std::get_if<wire::ShellInput>(&frame)) input += more->bytes;
      if (const auto* size = std::get_if<wire::ShellResize>(&frame))
        process.resize(size->columns, size->rows);
      input_ends |= std::holds_alternative<wire::ShellInputEnds>(frame);
    }
    return credit;
  }
  // Returns the number of bytes written.
  uint32_t write_input(containers::ExecProcess& process) {
    uint32_t written = 0;
    if (!input.empty()) {
      written = uint32_t(process.write(input).value());
      input.erase(0, written);
      const MutexLock lock(mutex);
      input_held -= std::min(input_held, written);
    }
    if (input.empty() && std::exchange(input_ends, false)) process.end_input();
    return written;
  }
  void spend_credit(size_t bytes) {
    const MutexLock lock(mutex);
    credit -= uint32_t(bytes);
  }
};

Shells::Shells(Start start, Send send, Clock& clock)
    : start_(std::move(start)), send_(std::move(send)), clock_(clock) {}

Shells::~Shells() {
  close_all();
  const MutexLock lock(mutex_);
  for (auto& [number, shell] : shells_)
    if (shell->thread.joinable()) shell->thread.join();
}

void Shells::send_frame(uint64_t shell, const wire::ShellFrame& frame) {
  send_(wire::ShellData{shell, wire::encode_shell_payload(frame)});
}

// Joins ended threads.
void Shells::join_ended() {
  std::erase_if(shells_, [](const auto& entry) {
    if (!entry.second->over) return false;
    entry.second->thread.join();
    return true;
  });
}

void Shells::open(const wire::OpenShell& order) {
  const MutexLock lock(mutex_);
  join_ended();
  if (shells_.count(order.shell) > 0) return;  // repeated order
  if (shells_.size() >= kShellsMax)
    return send_frame(order.shell,
                      wire::ShellEnded{-1, "this host has " + std::to_string(kShellsMax) +
                                               " shells already, which is the limit"});
  auto shell = std::make_shared<Shell>();
  shell->order = order;
  shells_[order.shell] = shell;
  shell->thread = std::thread([this, shell] { run(shell); });
}

void Shells::data(const wire::ShellData& data) {
  const auto frame = wire::decode_shell_payload(data.payload);
  const MutexLock lock(mutex_);
  const auto found = shells_.find(data.shell);
  if (found == shells_.end()) return;  // it has ended; the report of that is in transit
  Shell& shell = *found->second;
  {
    const MutexLock inner(shell.mutex);
    if (frame && std::holds_alternative<wire::ShellEnded>(*frame)) {
      shell.closed = true;  // without a client
    } else if (const auto* credit = frame ? std::get_if<wire::ShellCredit>(&*frame) : nullptr) {
      shell.credit = std::min(wire::kShellWindowBytes, shell.credit + credit->bytes);
    } else if (const auto* input = frame ? std::get_if<wire::ShellInput>(&*frame) : nullptr;
               input && shell.input_held + input->bytes.size() > wire::kShellWindowBytes) {
      shell.closed = true;  // it exceeded its window
    } else if (frame) {
      if (input) shell.input_held += uint32_t(input->bytes.size());
      shell.frames.push_back(*frame);
    } else {
      shell.closed = true;
    }
  }
  shell.notifier.notify();
}

void Shells::close_all() {
  const MutexLock lock(mutex_);
  for (auto& [number, shell] : shells_) {
    shell->closed = true;
    shell->notifier.notify();
  }
}

void Shells::run(const std::shared_ptr<Shell>& shell) {
  const uint64_t number = shell->order.shell;
  auto process = start_(shell->order);
  if (!process) {
    send_frame(number, wire::ShellEnded{-1, process.error().message});
    shell->over = true;
    return;
  }
  log(Level::info, "agent", "opened a shell", {{"shell", std::to_string(number)}});
  std::string reason;
  auto last_bytes = clock_.monotonic();
  while (!shell->closed) {
    const uint32_t credit = shell->apply_frames(**process);
    if (const uint32_t written = shell->write_input(**process); written > 0) {
      last_bytes = clock_.monotonic();
      send_frame(number, wire::ShellCredit{written});
    }
    auto output = (*process)->read(std::min<size_t>(credit, wire::kShellBytesMax),
                                   shell->input.empty() ? kShellLookInterval : kInputInterval,
                                   shell->notifier.descriptor());
    if (!output) break;
    if (!output->empty()) {
      last_bytes = clock_.monotonic();
      shell->spend_credit(output->size());
      send_frame(number, wire::ShellOutput{std::move(*output)});
    }
    if (clock_.monotonic() - last_bytes > kShellIdleMax) {
      reason = "idle for " + std::to_string(kShellIdleMax / 1h) + " hours";
      break;
    }
  }
  const int code = (*process)->finish();
  process->reset();
  if (!shell->closed) send_frame(number, wire::ShellEnded{code, reason});
  log(Level::info, "agent", "ended a shell",
      {{"shell", std::to_string(number)}, {"code", std::to_string(code)}});
  shell->over = true;
}

}  // namespace trainyard::agent
