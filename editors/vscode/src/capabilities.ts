import type { ClientCapabilities, FeatureState, StaticFeature } from 'vscode-languageclient';

/** Announces that this client previews bulk edits itself. The server then answers with the command midspan.preview. */
export class PreviewCapability implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...capabilities.experimental, midspanPreview: true };
  }

  initialize(): void {}

  getState(): FeatureState {
    return { kind: 'static' };
  }

  clear(): void {}
}
