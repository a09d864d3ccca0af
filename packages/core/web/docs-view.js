// Runs before the page is first drawn, so that a link to one service does not show the introduction for a moment.
document.documentElement.dataset.view = /^\/docs\/[^/]+/.test(location.pathname) ? 'service' : 'list';
