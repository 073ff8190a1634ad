/** The page of the preview. `source` is where the webview may load from; only the script with `nonce` may run. */
export function previewPage(page: { source: string; nonce: string; script: string; style: string }): string {
  const { source, nonce, script, style } = page;
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Midspan</title>
</head>
<body>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`;
}
