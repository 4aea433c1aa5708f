// Provides input channels: directories of shared file systems, mounted at
// /opt/ml/input/data/<channel>; objects copied to /opt/ml/input/data/<channel>/, with a manifest
// next to it; mounted under the same names, and fetched as they are read; or streamed through FIFOs
// /opt/ml/input/data/<channel>_<epoch>.
#include "agent/files/channels.hpp"

#include "agent/report/progress.hpp"
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "os/mounts.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kInput = "input/data";

Result<void> copy_channel(StepContext& context, const domain::Channel& channel, const Slot& slot) {
  const std::string place = std::string(kInput) + "/" + channel.name;
  ProgressMeter progress("channel " + channel.name, context.world.say_now, context.world.clock);
  // A listing does not tell a host's share of a sharded channel, or of one with a manifest.
  const bool listed_is_read = channel.distribution == domain::Distribution::fully_replicated &&
                              channel.s3_data_type == "S3Prefix";
  const auto store = counted(context.world.objects, progress, listed_is_read);
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    const auto directory = TRY(context.ml_tree->make(place));
    const auto downloaded =
        TRY(download_channel(*store, channel, slot, directory, context.interruption));
    return context.ml_tree->write(
        place + "-manifest", contract::channel_manifest(downloaded.prefix_uri, downloaded.keys));
  }));
  progress.finish();
  return {};
}

// Returns the reason why a channel in FastFile mode has to be copied; "" if there is none.
std::string why_copied(const StepContext& context) {
  if (context.order.reuse_host) return "a reused host keeps its mounts";
  return can_mount() ? "" : "/dev/fuse cannot be opened on this machine";
}

Result<void> copy_instead(StepContext& context, const domain::Channel& channel, const Slot& slot,
                          const std::string& why) {
  context.world.facts.say("channel " + channel.name +
                          ": FastFile mode is not available, copying as in File mode: " + why);
  return copy_channel(context, channel, slot);
}

Result<void> mount_fast_file(StepContext& context, const domain::Channel& channel,
                             const Slot& slot) {
  if (const auto why = why_copied(context); !why.empty())
    return copy_instead(context, channel, slot, why);
  const std::string inside = std::string(kInput) + "/" + channel.name;
  ListedChannel listed;
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    listed = TRY(list_share(context.world.objects, channel, slot, context.interruption));
    return {};
  }));
  if (!context.fast_files)
    context.fast_files = std::make_unique<FastFiles>(
        context.world.objects, context.world.cache, context.world.clock,
        context.order.objects_endpoint, "job " + context.order.job.name,
        [&context](const std::string& text) { context.world.facts.say(text); });
  containers::Mount mount;
  mount.source = context.path(kFileSystems + ("/" + channel.name));
  mount.destination = std::string(contract::kBase) + "/" + inside;
  const auto mounted =
      context.fast_files->mount(mount.source, channel.name, std::move(listed.objects));
  if (!mounted && mounted.error().kind == Kind::unavailable)
    return copy_instead(context, channel, slot, mounted.error().message);
  TRY(mounted);
  context.mounts.push_back(std::move(mount));
  TRY(context.ml_tree->make(inside));
  return context.ml_tree->write(inside + "-manifest",
                                contract::channel_manifest(listed.prefix_uri, listed.keys));
}

// Listed now, so that errors are reported before the process runs; streamed once the FIFOs exist.
Result<void> prepare_pipe(StepContext& context, const domain::Channel& channel, const Slot& slot,
                          const std::string& doing) {
  std::optional<data::Contents> contents;
  TRY(with_store(context, "channel " + channel.name, [&]() -> Result<void> {
    contents = TRY(stream_channel(context.world.objects, channel, context.interruption));
    return {};
  }));
  const bool sharded = channel.distribution == domain::Distribution::sharded_by_s3_key;
  const data::Form form{channel.compression == "Gzip", channel.record_wrapper == "RecordIO"};
  context.pipes.push_back(std::make_unique<ChannelPipe>(
      context.world.objects, context.world.clock, context.ml(kInput), channel.name,
      std::move(*contents), data::Deal{channel.shuffle_seed, sharded, slot.host, slot.hosts}, form,
      [&context, doing](const Error& error) {
        context.input_failure.tell(failure_of(error, doing));
      }));
  return {};
}

// The mount is ours, on a path that no job can change; the container gets it from there.
Result<void> mount_channel(StepContext& context, const domain::Channel& channel) {
  const auto& source = *channel.file_system;
  const auto root = context.order.file_systems.find(source.id);
  if (root == context.order.file_systems.end())
    return not_found("file system " + source.id + " not found");
  containers::Mount mount;
  mount.source = context.path(kFileSystems + ("/" + channel.name));
  mount.destination = std::string(contract::kBase) + "/" + kInput + "/" + channel.name;
  mount.read_only = !source.writable;
  mount.identity = shared_identity(context);
  TRY(os::bind_beneath(root->second, source.path, mount.source).in(source.id));
  context.mounts.push_back(std::move(mount));
  return {};
}

Result<void> bring(StepContext& context, const domain::Channel& channel, const Slot& slot,
                   const std::string& doing) {
  if (channel.file_system) return mount_channel(context, channel);
  switch (channel.input_mode) {
    case domain::InputMode::file:
      return copy_channel(context, channel, slot);
    case domain::InputMode::pipe:
      return prepare_pipe(context, channel, slot, doing);
    case domain::InputMode::fast_file:
      return mount_fast_file(context, channel, slot);
  }
  return {};
}

}  // namespace

std::optional<Failure> bring_channels(StepContext& context) {
  const auto& spec = context.order.spec;
  for (const auto& channel : spec.channels) {
    const auto slot = slot_of(channel, spec.groups, context.order.host);
    if (!slot) continue;
    const std::string doing = "Data download failed: channel " + channel.name;
    // AWS's pattern for names allows dots; these two names are directories already.
    if (channel.name == "." || channel.name == "..") {
      return Failure{domain::Fault::client, doing + ": invalid name for a directory"};
    }
    auto brought = bring(context, channel, *slot, doing);
    if (!brought) return failure_of(brought.error(), doing);
  }
  return {};
}

void end_channels(StepContext& context) { context.fast_files.reset(); }

std::optional<Failure> start_pipes(StepContext& context) {
  for (auto& pipe : context.pipes) {
    if (auto started = pipe->start(); !started)
      return failure_of(started.error(), "making the channels' FIFOs");
  }
  return {};
}

std::optional<Failure> finish_pipes(StepContext& context) {
  end_pipes(context);
  return {};
}

void end_pipes(StepContext& context) { context.pipes.clear(); }

}  // namespace trainyard::agent
