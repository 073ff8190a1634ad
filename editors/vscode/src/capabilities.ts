import type { ClientCapabilities, FeatureState, StaticFeature } from 'vscode-languageclient';

/**
 * Announces that this client previews bulk edits itself: the server then answers with the command midspan.preview. And
 * that it answers midspan/diagnostics.
 */
export class OwnCapabilities implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...capabilities.experimental, midspanPreview: true, midspanDiagnostics: true };
  }

  initialize(): void {}

  getState(): FeatureState {
    return { kind: 'static' };
  }

  clear(): void {}
}
