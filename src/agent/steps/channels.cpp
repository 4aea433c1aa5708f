// Input channels in File mode: /opt/ml/input/data/<channel>/ and its manifest.
#include "agent/channels.hpp"

#include "agent/steps.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "host/files.hpp"

namespace trainyard::agent {

std::optional<Failure> download_channels(Site& site) {
  const auto& spec = site.order.spec;
  for (const auto& channel : spec.channels) {
    const std::string doing = "Data download failed: channel " + channel.name;
    // AWS's pattern for names allows dots; these two are directories already.
    if (channel.name == "." || channel.name == "..") {
      return Failure{domain::Fault::client, doing + ": that name cannot be a directory's"};
    }
    if (channel.input_mode != domain::InputMode::file) {
      return Failure{domain::Fault::client, doing + ": only File mode is there"};
    }
    const std::string directory = site.ml("input/data/" + channel.name);
    Downloaded downloaded;
    auto done = with_store(site, "channel " + channel.name, [&]() -> Result<void> {
      downloaded = TRY(download_channel(site.world.objects, channel, site.order.host, spec.hosts(), directory,
                                        site.interruption));
      return host::write_file(directory + "-manifest",
                              contract::channel_manifest(downloaded.prefix_uri, downloaded.paths));
    });
    if (!done) return failure_of(done.error(), doing);
  }
  return {};
}

}  // namespace trainyard::agent
