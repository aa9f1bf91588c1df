package testengine;

import java.util.List;

import org.elasticsearch.common.settings.Setting;
import org.elasticsearch.index.IndexService;
import org.elasticsearch.plugins.Plugin;

/** Lets an index say how often its retention leases move on, as the tests of Elasticsearch itself do. Without a say it is every 30 s, as on a server. */
public final class LeaseIntervalPlugin extends Plugin {
    @Override
    public List<Setting<?>> getSettings() {
        return List.of(IndexService.RETENTION_LEASE_SYNC_INTERVAL_SETTING);
    }
}
